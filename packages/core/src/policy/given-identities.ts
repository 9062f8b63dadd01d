import { startOf } from '../store/identity.js'
import { SluiceError, show } from '../util/errors.js'
import { kindOf } from './keyed.js'
import { type Given, type GivenKeys, valueFor } from './kinds.js'
import type { KeyFunction } from './limits/limit.js'
import { planOf } from './plan-of-kind.js'
import type { Policy, PolicyChoice } from './policy.js'

/** The kind of requests that have no key and are counted by something else. */
const ANONYMOUS = 'anonymous'
export const ANONYMOUS_START = startOf(ANONYMOUS)

/** Keys without which there is no request, so that no anonymous client is counted instead of them. */
const NEVER_MISSING = ['ip', 'everyone', 'path', 'method']

/** The identities that a limiter is given by hand, by their kind or as text, and what it counts them under. */
export class GivenIdentities {
  readonly #where: string
  readonly #policies: readonly Policy<never>[]
  readonly #anonymous: KeyFunction<never> | undefined
  /** Over all tiers, each once. */
  readonly #kinds: readonly string[]

  /** `anonymous`: what counts for a request whose key is missing. */
  constructor(policy: PolicyChoice<never>, anonymous: KeyFunction<never> | undefined) {
    this.#where = policy.where
    this.#policies = policy.all
    this.#anonymous = anonymous
    this.#kinds = [...new Set(this.#policies.flatMap((each) => this.#kindsOf(each)))]
  }

  /**
   * What an identity is counted under in one tier.
   *
   * @throws SluiceError `INVALID_KEY`, which lists the kinds
   */
  keysIn(policy: Policy<never>, identity: unknown): GivenKeys {
    const given = this.#read(this.#kinds, identity)
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
    const given = this.#read(this.#kinds, identity)
    return policies.flatMap((policy) => {
      const keys = this.#keysOf(policy, given)
      return keys ? [{ policy, keys }] : []
    })
  }

  #keysOf(policy: Policy<never>, given: Given): GivenKeys | undefined {
    if (given.kind !== ANONYMOUS || !this.#anonymous) return policy.given(given)
    const indices = missingIn(policy)
    if (indices.length === 0) return undefined
    const text = ANONYMOUS_START + valueFor(policy.where, this.#anonymous, given)
    const identities = indices.map(() => text)
    return { value: given.value, identities, finest: text, planOf: (whole) => planOf(whole, indices) }
  }

  #kindsOf(policy: Policy<never>): readonly string[] {
    return this.#anonymous && missingIn(policy).length > 0 ? [...policy.kinds, ANONYMOUS] : policy.kinds
  }

  #read(kinds: readonly string[], identity: unknown): Given {
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

/** Which keys of a policy a request may not have. */
function missingIn({ keys }: Policy<never>): number[] {
  const isNeverMissing = (kind: string) => NEVER_MISSING.includes(kind)
  return keys.flatMap((key, i) => (kindOf(key).split('+').every(isNeverMissing) ? [] : [i]))
}

function wrongIdentity(where: string, kinds: readonly string[], got: unknown): never {
  const examples = kinds.map((kind) => {
    const name = /^\w+$/.test(kind) ? kind : JSON.stringify(kind)
    const values = kind.split('+').map(() => '…')
    return `{ ${name}: ${values.length > 1 ? `[${values.join(', ')}]` : '…'} }`
  })
  const given = isPlainObject(got) ? entriesOf(got).map(([kind]) => kind) : undefined
  const shown = given
    ? `an object of ${given.length === 1 ? `the kind ${show(given[0])}` : `${given.length} kinds`}`
    : show(got)
  const expected = takesText(kinds)
    ? ['a non-empty string or a number', ...examples].join(', or ')
    : examples.join(' or ')
  throw new SluiceError('INVALID_KEY', `${where}: key: expected ${expected}, got ${shown}`)
}
