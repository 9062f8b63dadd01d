import { startOf } from '../store/identity.js'
import { SluiceError, show } from '../util/errors.js'
import { kindOf } from './keyed.js'
import { type Given, type GivenKeys, valueFor } from './kinds.js'
import type { KeyFunction } from './limits/limit.js'
import { planOf } from './plan-of-kind.js'
import type { Policy, PolicyChoice } from './policy.js'

/** What is counted where a subject has no key of its own. */
export interface ReplacementKey<Subject> {
  readonly key: KeyFunction<Subject>
  /** Whether keys of a kind, which is no composed one, may be missing. */
  readonly mayReplace: (kind: string) => boolean
}

/** Reads the identities that a limiter is given by hand, by their kind or as text. */
export class GivenIdentities {
  readonly #where: string
  readonly #policy: PolicyChoice<never>
  readonly #replacement: ReplacementKey<never> | undefined

  constructor(policy: PolicyChoice<never>, replacement: ReplacementKey<never> | undefined) {
    this.#where = policy.where
    this.#policy = policy
    this.#replacement = replacement
  }

  /** Over all tiers, each once. Policies that are data may have others by now. */
  get #kinds(): readonly string[] {
    return [...new Set(this.#policy.all.flatMap((each) => this.#kindsOf(each)))]
  }

  /**
   * What an identity is counted under in one tier.
   *
   * @throws SluiceError `INVALID_KEY`, which lists the kinds
   */
  keysIn(policy: Policy<never>, identity: unknown): GivenKeys {
    const given = this.read(identity)
    return this.#keysOf(policy, given) ?? wrongIdentity(policy.where, this.#kindsOf(policy), identity)
  }

  /**
   * What an identity is counted under in each tier that has limits of its kind.
   *
   * @throws SluiceError `INVALID_KEY`, which lists the kinds
   */
  keysInAll<Subject>(
    policies: readonly Policy<Subject>[],
    identity: unknown,
  ): { policy: Policy<Subject>; keys: GivenKeys }[] {
    const given = this.read(identity)
    return policies.flatMap((policy) => {
      const keys = this.#keysOf(policy, given)
      return keys ? [{ policy, keys }] : []
    })
  }

  #keysOf(policy: Policy<never>, given: Given): GivenKeys | undefined {
    const replacement = this.#replacement
    if (!replacement || given.kind !== kindOf(replacement.key)) return policy.given(given)
    const indices = replaceable(policy, replacement)
    if (indices.length === 0) return undefined
    const text = startOf(given.kind) + valueFor(policy.where, replacement.key, given)
    const identities = indices.map(() => text)
    return { value: given.value, identities, finest: text, planOf: (whole) => planOf(whole, indices) }
  }

  #kindsOf(policy: Policy<never>): readonly string[] {
    const replacement = this.#replacement
    return replacement && replaceable(policy, replacement).length > 0
      ? [...policy.kinds, kindOf(replacement.key)]
      : policy.kinds
  }

  /**
   * The kind of an identity, and its value, which is not checked yet.
   *
   * @throws SluiceError `INVALID_KEY`, which lists the kinds
   */
  read(identity: unknown): Given {
    const kinds = this.#kinds
    if (isPlainObject(identity)) {
      const [[kind, value] = ['', undefined], ...others] = entriesOf(identity)
      if (others.length > 0 || !kinds.includes(kind)) wrongIdentity(this.#where, kinds, identity)
      return { kind, value }
    }
    if (!takesText(kinds)) wrongIdentity(this.#where, kinds, identity)
    return { kind: kinds[0] as string, value: identity }
  }
}

/** Where there is one kind, a text is of that; but the parts of a composed one are given apart. */
function takesText([kind, ...others]: readonly string[]): boolean {
  return others.length === 0 && !kind?.includes('+')
}

/** Whether it can only be an identity by its kind: requests have prototypes of their own. */
export function isPlainObject(subject: unknown): subject is object {
  const prototype = prototypeOf(subject)
  return prototype === Object.prototype || prototype === null
}

/** Whether it is data, as JSON may hold it, rather than a request. */
export function isData(subject: unknown): boolean {
  return (
    typeof subject !== 'object' ||
    subject === null ||
    isPlainObject(subject) ||
    prototypeOf(subject) === Array.prototype
  )
}

/** Undefined for what is no object, and for a proxy that does not let itself be looked at. */
function prototypeOf(subject: unknown): unknown {
  try {
    return typeof subject === 'object' && subject !== null ? Object.getPrototypeOf(subject) : undefined
  } catch {
    return undefined
  }
}

function entriesOf(identity: object): [string, unknown][] {
  try {
    return Object.entries(identity)
  } catch {
    return []
  }
}

/** Which keys of a policy may be replaced: those with a part that may be missing. */
function replaceable({ keys }: Policy<never>, { mayReplace }: ReplacementKey<never>): number[] {
  return keys.flatMap((key, i) => (kindOf(key).split('+').some(mayReplace) ? [i] : []))
}

function wrongIdentity(where: string, kinds: readonly string[], got: unknown): never {
  const examples = kinds.map((kind) => {
    const name = /^\w+$/.test(kind) ? kind : JSON.stringify(kind)
    const values = kind.split('+').map(() => '…')
    return `{ ${name}: ${values.length > 1 ? `[${values.join(', ')}]` : '…'} }`
  })
  const given = isPlainObject(got) ? entriesOf(got).map(([kind]) => kind) : undefined
  const expected = takesText(kinds)
    ? ['a non-empty string or a number', ...examples].join(', or ')
    : examples.join(' or ')
  throw new SluiceError(
    'INVALID_KEY',
    `${where}: key: expected ${expected}, got ${given ? shownKinds(given) : show(got)}`,
  )
}

function shownKinds(kinds: readonly string[]): string {
  if (kinds.length === 1) return `an object of the kind ${show(kinds[0])}`
  const several = kinds.length > 1 ? ', whose limits are apart: one call for each' : ''
  return `an object of ${kinds.length} kinds${several}`
}
