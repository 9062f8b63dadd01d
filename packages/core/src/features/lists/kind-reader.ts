import { checkedKey, isMissing } from '../../policy/key.js'
import { finenessOf, kindOf, partsOf } from '../../policy/keyed.js'
import { type Given, valueFor } from '../../policy/kinds.js'
import type { KnownRequest } from '../../policy/known-request.js'
import type { KeyFunction } from '../../policy/limits/limit.js'
import type { PolicyChoice } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import type { KeyValue } from '../../store/identity.js'
import type { ListedIdentity, ListKeys } from '../../store/list.js'
import { propertyOf } from '../../util/property-of.js'
import { standardValue } from './standard-value.js'

type Key<Subject> = KeyFunction<Subject> | undefined

/** A limiter's keys beside those of its policy, by their kind. Undefined if there is none of the kind. */
export type MoreKeys<Subject> = (kind: string) => KeyFunction<Subject> | undefined

/** The default of `byIp()`. */
const STANDARD_IPV6_PREFIX = 64
/** A value of every kind: of credentials it is a scheme and a token. */
const PROBE = 'Probe 1'

/** The identities of a request, or of another argument of a limiter, by the keys of its policy. */
export class KindReader<Subject> implements ListKeys {
  /** The kinds that there are, for messages. */
  readonly all: readonly string[]
  readonly ipv6Prefix: number
  readonly #where: string
  readonly #keys = new Map<string, Key<Subject>>()
  readonly #moreKeys: MoreKeys<Subject>
  readonly #addressOf: (subject: Subject, context: HttpContext<Subject>) => unknown

  constructor(
    policy: PolicyChoice<Subject>,
    addressOf: (subject: Subject, context: HttpContext<Subject>) => unknown,
    moreKeys: MoreKeys<Subject>,
    moreKinds: readonly string[],
  ) {
    this.#where = policy.where
    this.#addressOf = addressOf
    this.#moreKeys = moreKeys
    const keys = policy.all
      .flatMap((each) => each.keys)
      .flatMap((key): Key<Subject>[] => (key ? [key, ...partsOf(key)] : [key]))
    // Among several keys that group addresses, the one with the smallest groups, as for blocks.
    for (const key of [...keys].sort((one, other) => finenessOf(other) - finenessOf(one))) {
      if (!this.#keys.has(kindOf(key))) this.#keys.set(kindOf(key), key)
    }
    const byIp = this.#keys.get('ip')
    this.ipv6Prefix = (byIp && propertyOf(byIp, 'bits')?.ipv6) ?? STANDARD_IPV6_PREFIX
    this.all = [...new Set([...this.#keys.keys(), ...moreKinds])]
  }

  /**
   * Whether a request can have values of a kind. `raw`: whether the values to compare with were made by the kind alone, without
   * regard to the policy's keys.
   */
  canRead(kind: string, raw: boolean): boolean {
    if (kind === 'ip') return this.all.includes(kind)
    return this.#has(kind) && !(raw && !this.#isStandard(kind))
  }

  valueOf(kind: string, raw: KeyValue | readonly KeyValue[]): string | undefined {
    return this.#has(kind)
      ? valueFor(this.#where, this.#keyOf(kind), { kind, value: raw, isCounted: false })
      : undefined
  }

  /**
   * The counted value of a kind; for `ip`, the address itself. Undefined if a request has none.
   *
   * @throws RequestFault for an invalid value, which otherwise would be on no list, whoever sends it
   */
  read(kind: string, subject: Subject, context: HttpContext<Subject>): string | undefined {
    if (kind === 'ip') {
      const address = this.#addressOf(subject, context)
      return typeof address === 'string' ? address : undefined
    }
    const key = this.#keyOf(kind)
    const value = key ? key(subject, context) : subject
    return isMissing(value) ? undefined : checkedKey(this.#where, value, true)
  }

  /** The same of an identity that is given by hand. */
  readGiven(kind: string, given: Given): string | undefined {
    const value = partOf(kind, given)
    if (value === undefined) return undefined
    return kind === 'ip' ? String(value) : this.valueOf(kind, value as KeyValue)
  }

  /** The same of a request that is known in part. */
  readKnown(kind: string, known: KnownRequest): string | undefined {
    return kind === 'ip' ? known.address : known.valueFor(this.#where, this.#keyOf(kind))
  }

  /** An identity as the policy's own keys would count it. */
  textOf({ kind, value }: ListedIdentity): string {
    const key = kind === 'ip' ? this.#keys.get(kind) : undefined
    return (key && propertyOf(key, 'normalize')?.(value)) || value
  }

  #has(kind: string): boolean {
    return this.#keys.has(kind) || this.#moreKeys(kind) !== undefined
  }

  #keyOf(kind: string): Key<Subject> {
    return this.#keys.has(kind) ? this.#keys.get(kind) : this.#moreKeys(kind)
  }

  /** Whether the policy's key of a kind makes values as they are made without a policy. */
  #isStandard(kind: string): boolean {
    if (kind.includes('+')) return false
    return this.valueOf(kind, PROBE) === standardValue(kind, PROBE)
  }
}

/** The value of a kind in an identity, which may be a part of a composed one. */
function partOf(kind: string, given: Given): unknown {
  if (given.kind === kind) return given.value
  const at = given.kind.split('+').indexOf(kind)
  return at >= 0 && Array.isArray(given.value) ? given.value[at] : undefined
}
