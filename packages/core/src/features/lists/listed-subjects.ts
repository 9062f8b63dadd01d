import type { KnownMatch } from '../../limiter/early-decisions.js'
import { isAddressForgeable, lastProxyTrust } from '../../limiter/open-proxy.js'
import { entriesIn } from '../../policy/given-identities.js'
import type { Given } from '../../policy/kinds.js'
import type { KnownRequest } from '../../policy/known-request.js'
import { type ReadablePlan, readablePlan } from '../../policy/plan.js'
import type { PolicyChoice } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import { startOf } from '../../store/identity.js'
import { givenLists } from '../../store/list.js'
import { NO_TERMS, PEEK, requestOf, resultOf, type Store } from '../../store/store.js'
import type { LimiterWarning, Warnings } from '../../util/warnings.js'
import { checkActualCost, type DecidedBy, decisionOn, maxToSettle } from '../../verdict/decision.js'
import { type Verdict, verdictOf } from '../../verdict/verdict.js'
import { idleMeter } from '../meters/request-meter.js'
import { KindReader, type MoreKeys } from './kind-reader.js'
import { ListStep, type ListSubject, listsIn } from './list-step.js'
import type { ListOptions, ListPredicate } from './options.js'

/** Sources of identities that the policy's keys do not read. */
export interface ListSources<Subject> {
  readonly addressOf: (subject: Subject, context: HttpContext<Subject>) => unknown
  readonly moreKeys: MoreKeys<Subject>
  readonly moreKinds: readonly string[]
  /** The options that `deny` may contain beside `lists`. */
  readonly denyOptions: readonly string[]
}

/** A list charges nothing, so there is nothing to settle. */
const BY_LIST: Omit<DecidedBy, 'list'> = {
  charges: {
    counts: () => true,
    refund: async () => false,
    async settle(decision, actual) {
      const amounts = entriesIn(actual)?.map(([, units]) => units) ?? [actual]
      for (const units of amounts) checkActualCost('settle', units, maxToSettle(decision))
      return false
    },
    meter: (decision) => idleMeter(decision, decision.result.allowed),
  },
  kind: 'listed',
  store: undefined,
  policy: undefined,
  priority: 0,
  reserved: undefined,
  resets: 0,
  took: undefined,
  tryAgainMs: undefined,
  isOfResponse: undefined,
}

const NO_LIMITS = { resolved: [], cellOf: [], units: [], reserves: undefined, calendars: undefined, definitions: [] }

/** Whether a limiter or its store has lists. */
export function hasLists({ allow, deny }: { allow?: unknown; deny?: unknown }, store: Store | undefined): boolean {
  return allow !== undefined || deny !== undefined || (store !== undefined && givenLists(store) !== undefined)
}

/** Checks the lists of a limiter and of its store, and turns matches into verdicts. */
export class ListedSubjects<Subject> {
  readonly #where: string
  readonly #reader: KindReader<Subject>
  readonly #step: ListStep
  readonly #plan: ReadablePlan
  readonly #warnings: Warnings<LimiterWarning>

  /** @throws SluiceError `INVALID_POLICY` */
  constructor(
    policy: PolicyChoice<Subject>,
    store: Store,
    options: ListOptions<Subject>,
    warnings: Warnings<LimiterWarning>,
    { addressOf, moreKeys, moreKinds, denyOptions }: ListSources<Subject>,
  ) {
    const { where } = policy
    const reader = new KindReader(policy, addressOf, moreKeys, moreKinds)
    const { allow, deny } = listsIn(where, options, denyOptions)
    this.#where = where
    this.#reader = reader
    this.#warnings = warnings
    this.#plan = readablePlan({ policy: policy.name, cells: [], starts: [''], ...NO_TERMS, ...NO_LIMITS })
    this.#step = new ListStep(where, allow, deny, store, reader, (list, kind) => this.#warnUnreadable(list, kind))
  }

  /** See `ListStep`. */
  get denying(): readonly string[] {
    return this.#step.denying
  }

  /** See `ListStep`. */
  get allowing(): readonly string[] {
    return this.#step.allowing
  }

  /** See `ListStep`. */
  get pending(): Promise<unknown> | undefined {
    return this.#step.pending
  }

  /** Undefined if no list matches the argument. */
  match(subject: Subject, context: HttpContext<Subject>): Verdict | undefined {
    return this.#verdict({
      valueOf: (kind) => this.#reader.read(kind, subject, context),
      ask: (predicate: ListPredicate<never>) => predicate(subject as never, context as never),
      // Without HTTP there is no context, and the application determines the address.
      hasForgeableAddress: () => context !== undefined && isAddressForgeable(context, this.#warnings.emit),
    })
  }

  /** The same for an identity that is given by hand: functions of requests are not called. */
  matchGiven(given: Given): Verdict | undefined {
    return this.#verdict({
      valueOf: (kind) => this.#reader.readGiven(kind, given),
      ask: undefined,
      hasForgeableAddress: () => false,
    })
  }

  matchKnown(known: KnownRequest): KnownMatch {
    const subject: ListSubject = {
      valueOf: (kind) => this.#reader.readKnown(kind, known),
      ask: undefined,
      hasForgeableAddress: () => isAddressForgeable({ proxyTrust: lastProxyTrust() }),
    }
    const missing = this.#step.missing((kind) => subject.valueOf(kind) !== undefined)
    return { verdict: this.#verdict(subject), missing }
  }

  /** Warns about a block that has no effect, as an allow list admits the identity. */
  adviseOnBlock(given: Given): void {
    const list = this.matchGiven(given)?.list
    if (list?.effect !== 'allow') return
    this.#warnings.emit(
      'SLUICE_BLOCK_ALLOWED',
      `${this.#where}: block: an identity of the kind ${given.kind} was blocked that ${list.list} allows: it is still ` +
        'admitted, as allow lists come before blocks',
    )
  }

  #verdict(subject: ListSubject): Verdict | undefined {
    const listed = this.#step.match(subject)
    if (!listed) return undefined
    const { identity, report } = listed
    const address = identity ? undefined : subject.valueOf('ip')
    const known = identity ?? (address === undefined ? undefined : { kind: 'ip', value: address })
    const text = known ? startOf(known.kind) + this.#reader.textOf(known) : ''
    const request = requestOf(PEEK, this.#plan, [text], [])
    const result = resultOf(0, report.effect === 'allow', [], 0)
    return verdictOf(decisionOn(request, result, { ...BY_LIST, list: report }))
  }

  #warnUnreadable(list: string, kind: string): void {
    this.#warnings.emit(
      'SLUICE_LIST_KIND',
      `${this.#where}: ${list} has identities of the kind ${kind}, which this policy does not read from a request (it reads ` +
        `${this.#reader.all.join(', ')}): they match nothing`,
    )
  }
}
