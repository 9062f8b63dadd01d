import {
  givenLists,
  type List,
  type ListedIdentity,
  type ListKeeper,
  type ListMatch,
  type ListReport,
} from '../../store/list.js'
import { invalidPolicy, show, wrongPolicy } from '../../util/errors.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { ipAddress } from '../../util/ip-address.js'
import { isPropertyOf, propertyOf } from '../../util/property-of.js'
import { knownOptions } from '../../util/validate.js'
import { checkedLists, isList } from './given-lists.js'
import type { KindReader } from './kind-reader.js'
import type { DenyOptions, ListItem, ListOptions, ListPredicate } from './options.js'

/** A request, or another argument of a limiter, as lists see it. */
export interface ListSubject {
  /** The counted value of a kind; for `ip`, the address. Undefined if there is none. */
  valueOf(kind: string): string | undefined
  /** Calls a function of the user's. Undefined if there is no request to call it with. */
  readonly ask: ((predicate: ListPredicate<never>) => unknown) | undefined
  /** Whether the client could choose its address: then it is on no list that allows addresses. Called only where there is one. */
  readonly hasForgeableAddress: () => boolean
}

/** A match of a list. */
export interface Listed {
  readonly report: ListReport
  /** The identity that was found on the list. */
  readonly identity: ListedIdentity | undefined
}

/** How a policy reads identities. */
type Kinds = Pick<KindReader<never>, 'all' | 'canRead' | 'ipv6Prefix' | 'valueOf'>

interface Source {
  readonly list: List
  readonly effect: 'allow' | 'deny'
  readonly isOfStore: boolean
  /** Whether its values were made without regard to the policy's keys. */
  readonly isRaw: boolean
}

/** The lists that hold identities of one kind. */
interface Group {
  readonly kind: string
  readonly allow: readonly List[]
  readonly deny: readonly List[]
}

type Predicates = readonly ListPredicate<never>[]

/**
 * The step of a decision that looks at the lists, before anything else is known of the request. Among entries of one kind, the
 * smallest decides, and denies where two are as small. Between kinds, one that allows is enough.
 */
export class ListStep {
  readonly #where: string
  readonly #kinds: Kinds
  readonly #onUnreadable: (list: string, kind: string) => void
  readonly #sources: readonly Source[]
  readonly #allowing: Predicates
  readonly #denying: Predicates
  #groups: readonly Group[]
  /** The sum of all versions: none goes down. */
  #versions: number
  readonly #unreadable = new Set<string>()
  /** Those that are still read for the first time. */
  #pending: readonly List[]

  /** @throws SluiceError `INVALID_POLICY`, also for a kind that a list of the policy has and no key of it */
  constructor(
    where: string,
    allow: readonly ListItem<never>[],
    deny: readonly ListItem<never>[],
    store: ListKeeper,
    kinds: Kinds,
    onUnreadable: (list: string, kind: string) => void,
  ) {
    this.#where = where
    this.#kinds = kinds
    this.#onUnreadable = onUnreadable
    checkKinds(where, 'allow', allow, kinds)
    checkKinds(where, 'deny', deny, kinds)
    const ofStore = givenLists(store)
    const sourcesOf = (items: readonly unknown[], effect: Source['effect'], isOfStore: boolean): Source[] =>
      items.filter(isList).map((item) => {
        const list = (isPropertyOf(item, 'forStore') && item.forStore?.(where, store)) || item
        const isRaw = !isPropertyOf(list, 'forKeys')
        return { list: isRaw ? list : (list.forKeys?.(kinds) ?? list), effect, isOfStore, isRaw }
      })
    const predicatesIn = (items: readonly unknown[]) =>
      items.filter((item): item is ListPredicate<never> => typeof item === 'function')
    this.#sources = [
      ...sourcesOf(allow, 'allow', false),
      ...sourcesOf(ofStore?.allow ?? [], 'allow', true),
      ...sourcesOf(deny, 'deny', false),
      ...sourcesOf(ofStore?.deny ?? [], 'deny', true),
    ]
    this.#allowing = [...predicatesIn(allow), ...predicatesIn(ofStore?.allow ?? [])]
    this.#denying = [...predicatesIn(deny), ...predicatesIn(ofStore?.deny ?? [])]
    this.#versions = this.#sumOfVersions()
    this.#groups = this.#grouped()
    this.#pending = this.#sources.map(({ list }) => list).filter((list) => propertyOf(list, 'pending'))
  }

  /** The names of the lists that deny, those of the store included. */
  get denying(): readonly string[] {
    return this.#namesOf('deny')
  }

  /** The same of those that allow. */
  get allowing(): readonly string[] {
    return this.#namesOf('allow')
  }

  #namesOf(wanted: Source['effect']): readonly string[] {
    return this.#sources.filter(({ effect }) => effect === wanted).map(({ list }) => list.name)
  }

  /** Set until all lists are loaded, and resolves then. Decisions wait for it. */
  get pending(): Promise<unknown> | undefined {
    if (this.#pending.length === 0) return undefined
    this.#pending = this.#pending.filter((list) => propertyOf(list, 'pending'))
    return this.#pending.length === 0 ? undefined : Promise.all(this.#pending.map(({ pending }) => pending))
  }

  /** Undefined if no list has it. */
  match(subject: ListSubject): Listed | undefined {
    this.#refresh()
    let denied: Listed | undefined
    for (const group of this.#groups) {
      const { kind, deny } = group
      const allow = allowsAddresses(group) && subject.hasForgeableAddress() ? NO_LISTS : group.allow
      const value = subject.valueOf(kind)
      if (value === undefined) continue
      const identity = identityOf(kind, value)
      const allowing = smallest(allow, identity)
      const denying = smallest(deny, identity)
      if (allowing && !(denying && denying.match.size <= allowing.match.size)) {
        return listed('allow', identity, allowing)
      }
      if (denying) denied ??= listed('deny', identity, denying)
    }
    const { ask } = subject
    return this.#asked(this.#allowing, 'allow', ask) ?? denied ?? this.#asked(this.#denying, 'deny', ask)
  }

  /** The kinds that lists have besides those that are known, and `request` for functions, by what they may do. */
  missing(isKnown: (kind: string) => boolean): { readonly allow: readonly string[]; readonly deny: readonly string[] } {
    this.#refresh()
    const kindsOf = (effect: 'allow' | 'deny', predicates: Predicates) => [
      ...this.#groups.flatMap((group) => (group[effect].length > 0 && !isKnown(group.kind) ? [group.kind] : [])),
      ...(predicates.length > 0 ? ['request'] : []),
    ]
    return { allow: kindsOf('allow', this.#allowing), deny: kindsOf('deny', this.#denying) }
  }

  #refresh(): void {
    const versions = this.#sumOfVersions()
    if (versions === this.#versions) return
    this.#versions = versions
    this.#groups = this.#grouped()
  }

  #asked(predicates: Predicates, effect: 'allow' | 'deny', ask: ListSubject['ask']): Listed | undefined {
    if (!ask) return undefined
    for (const predicate of predicates) {
      const found: unknown = ask(predicate)
      // A promise would be truthy, and allow or deny every request.
      if (typeof found !== 'boolean') invalidPolicy(this.#where, effect, 'true or false', found)
      if (found) {
        const report: ListReport = { effect, kind: 'predicate', list: predicate.name, reason: '', expiresAt: undefined }
        return { report, identity: undefined }
      }
    }
    return undefined
  }

  #sumOfVersions(): number {
    let sum = 0
    for (const { list } of this.#sources) sum += list.version
    return sum
  }

  #grouped(): readonly Group[] {
    const groups = new Map<string, { kind: string; allow: List[]; deny: List[] }>()
    for (const { list, effect, isOfStore, isRaw } of this.#sources) {
      for (const kind of list.kinds) {
        if (!this.#kinds.canRead(kind, isRaw)) {
          if (!isOfStore) this.#warnUnreadable(list.name, kind)
          continue
        }
        const group = getOrInsert(groups, kind, () => ({ kind, allow: [], deny: [] }))
        group[effect].push(list)
      }
    }
    return [...groups.values()]
  }

  #warnUnreadable(list: string, kind: string): void {
    const name = `${list}\n${kind}`
    if (this.#unreadable.has(name)) return
    this.#unreadable.add(name)
    this.#onUnreadable(list, kind)
  }
}

const NO_LISTS: readonly List[] = []

function allowsAddresses({ kind, allow }: Group): boolean {
  return allow.length > 0 && (kind === 'ip' || kind.split('+').includes('ip'))
}

/** A list of a kind that no request has would be silently absent. */
function checkKinds(where: string, effect: string, items: readonly ListItem<never>[], kinds: Kinds): void {
  for (const list of items.filter(isList)) {
    if (isPropertyOf(list, 'forStore')) continue
    const unreadable = list.kinds.find((kind) => !kinds.canRead(kind, !isPropertyOf(list, 'forKeys')))
    if (unreadable === undefined) continue
    const known = kinds.all.map(show).join(', ')
    const expected = `kinds that this policy reads from a request (${known})`
    wrongPolicy(`${where}: ${effect}: expected ${expected}, got ${show(unreadable)} in ${list.name}`)
  }
}

interface Found {
  readonly list: List
  readonly match: ListMatch
}

function smallest(lists: readonly List[], identity: ListedIdentity): Found | undefined {
  let found: Found | undefined
  for (const list of lists) {
    const match = list.match(identity)
    if (match && !(found && found.match.size <= match.size)) found = { list, match }
  }
  return found
}

function listed(effect: 'allow' | 'deny', identity: ListedIdentity, { list, match }: Found): Listed {
  const { reason, expiresAt } = match
  return { report: { effect, kind: identity.kind, list: list.name, reason, expiresAt }, identity }
}

function identityOf(kind: string, value: string): ListedIdentity {
  const address = kind === 'ip' ? ipAddress(value) : undefined
  return address ? { kind, value, address } : { kind, value }
}

/**
 * The lists that options name. `denyOptions`: the options allowed beside `lists` in `deny`.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function listsIn<Subject>(
  where: string,
  { allow, deny }: ListOptions<Subject>,
  denyOptions: readonly string[],
): { allow: readonly ListItem<Subject>[]; deny: readonly ListItem<Subject>[] } {
  if (!isDenyOptions(deny))
    return { allow: checkedLists(where, 'allow', allow), deny: checkedLists(where, 'deny', deny) }
  knownOptions(`${where}: deny`, deny, ['lists', ...denyOptions])
  if (deny.lists === undefined) invalidPolicy(where, 'deny.lists', 'a list such as ipRanges([…])', undefined)
  return { allow: checkedLists(where, 'allow', allow), deny: checkedLists(where, 'deny.lists', deny.lists) }
}

/** Both sides of `deny`: the lists of either deny, and the code says how. */
export function eitherDeny<Subject>(
  inCode: ListOptions<Subject>['deny'],
  own: ListOptions<Subject>['deny'],
): ListOptions<Subject>['deny'] {
  if (inCode === undefined || own === undefined) return own ?? inCode
  const { lists, ...how } = isDenyOptions(inCode) ? inCode : { lists: inCode }
  return { ...how, lists: [lists, isDenyOptions(own) ? own.lists : own].flat() as readonly ListItem<Subject>[] }
}

function isDenyOptions<Subject>(deny: ListOptions<Subject>['deny']): deny is DenyOptions<Subject> {
  return typeof deny === 'object' && deny !== null && !Array.isArray(deny) && !isList(deny)
}
