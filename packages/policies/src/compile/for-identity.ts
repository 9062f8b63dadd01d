import { type IdentityByKind, type KeyFunction, type Limit, type PolicyOptions, SluiceError } from '@sluice/core'
import { getOrInsert, identityText, textValue } from '@sluice/core/internal'
import { shown } from '../problems/problem.js'
import { contextFor } from './explain.js'
import { variantOf } from './overrides.js'
import { type CompiledPolicy, type GivenOverride, variantsOf } from './policy.js'

/** The request for which the limits of an identity are shown. */
export interface RequestOfIdentity {
  /** Leaves out policies for other paths. @default policies of every path */
  readonly path?: string
  /** Beside `path`: leaves out policies for other methods. @default 'GET' */
  readonly method?: string
  /** The name of a tier, of policies that have it. @default every tier */
  readonly tier?: string
}

/** The limits of a policy, or of one of its tiers, for one identity. */
export interface LimitsForIdentity {
  readonly policy: string
  readonly tier: string | undefined
  /** The override that decides: its index in the document, or its table, and its end in ms since 1970. */
  readonly override: GivenOverride | undefined
  /** Those of the identity's kind, with a key that yields it whatever the request. */
  readonly limits: readonly Limit<unknown>[]
  /** That of the policy, for a limiter of these limits. */
  readonly consistency: PolicyOptions<unknown>['consistency']
}

export async function limitsForIdentity(
  policy: CompiledPolicy,
  identity: IdentityByKind,
  tier: string | undefined,
): Promise<LimitsForIdentity[]> {
  const { kind, value } = textValue(identityText('policies', identity))
  const found = await policy.overrides?.findGiven(kind, value)
  const variants = variantsOf(policy).filter(
    (each) => tier === undefined || each.tier === undefined || each.tier === tier,
  )
  return variants.flatMap((base) => {
    const { limits } = found ? variantOf(found, base) : base
    const limitsOfKind = limits.filter(({ key }) => (key?.kind ?? 'key') === kind)
    if (limitsOfKind.length === 0) return []
    const override = found && { index: found.index, until: found.until }
    return {
      policy: policy.name,
      tier: base.tier,
      override,
      limits: withIdentity(limitsOfKind, kind, value),
      consistency: policy.data.consistency,
    } as LimitsForIdentity
  })
}

/** The same limits, with keys that yield the identity. Equal keys stay one, as limits on one key may share their state. */
function withIdentity(limits: readonly Limit[], kind: string, value: string): Limit<unknown>[] {
  const keys = new Map<Limit['key'], KeyFunction<unknown>>()
  return limits.map((limit) => {
    const counted = kind === 'ip' ? groupOf(value, limit.key) : value
    const key = getOrInsert(keys, limit.key, () => Object.assign(() => counted, { kind }))
    return { ...limit, key } as Limit<unknown>
  })
}

/** The group of an address that a key counts: policies group addresses in several ways. */
function groupOf(value: string, key: Limit['key']): string {
  if (value.includes('/') && !(value.includes(':') && value.endsWith('/64'))) {
    throw new SluiceError('INVALID_KEY', `policies: ip: expected an address, got ${shown(value)}`)
  }
  // Addresses of IPv6 are given as the network of a client, which any of its addresses stands for.
  const ip = value.split('/', 1)[0] as string
  return String(key?.(undefined as never, contextFor({ path: '/', ip })))
}
