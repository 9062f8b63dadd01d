import type { HttpContext } from '@sluice/core'
import { type KnownPolicy, type KnownRequest, lastProxyTrust, ownFieldsOf } from '@sluice/core/internal'
import { contextFor } from './explain.js'
import { variantBy } from './overrides.js'
import { type CompiledPolicy, type Variant, variantsOf } from './policy.js'

/** A variant of a policy for a request that is known in part. */
type KnownVariant = Omit<KnownPolicy, 'matched'> & { readonly variant: Variant }

/**
 * The variants of a policy that may apply to a request that is known in part, with the override that is its own.
 *
 * @param context that of its path and method. Undefined if they are not known
 */
export async function variantsForKnown(
  policy: CompiledPolicy,
  known: KnownRequest,
  context: HttpContext<unknown> | undefined,
): Promise<KnownVariant[]> {
  const { data, name } = policy
  const { methods, hosts, headers } = ownFieldsOf(data.match ?? {})
  if (context && methods && !methods.includes(context.method) && !isHeadOf(methods, context.method)) return []
  // Whether they fit is not known.
  const unless = [...(hosts ? ['host'] : []), ...Object.keys(headers ?? {}).map((header) => `header:${header}`)]
  const needs = new Set<string>()
  const found = await policy.overrides?.find(contextOf(known, needs), (kind, key) => {
    const value = known.valueFor('overrides', key)
    if (value === undefined) needs.add(kind)
    return value
  })
  const variants = variantsOf(policy).filter(({ tier }) => !tier || !known.tier || tier === known.tier)
  return Promise.all(
    variants.map(async (base) => ({
      policy: name,
      tier: base.tier,
      override: found && { index: found.index, until: found.until },
      variant: await variantBy(found, base),
      needs: [...needs],
      unless,
    })),
  )
}

/** Routers deliver HEAD to the handler of GET. */
function isHeadOf(methods: readonly string[], method: string): boolean {
  return method === 'HEAD' && methods.includes('GET')
}

/** Its address is read only where an override is for addresses. */
function contextOf(known: KnownRequest, needs: Set<string>): HttpContext<unknown> {
  const context = { ...contextFor({ path: '/' }), proxyTrust: lastProxyTrust() }
  return Object.defineProperty(context, 'ip', {
    get() {
      if (known.address === undefined) needs.add('ip')
      return known.address
    },
  })
}
