import { createLimiter, type HttpContext, type Limit, type MatchedPolicies, type RedisStore } from '@sluice/core'
import { kindOf, stateNamesOf, UNSEEN_RESPONSE, type UsedLimit } from '@sluice/core/internal'
import { policies, readDocument } from '@sluice/policies'
import { namesIn } from '../../documents/names.js'

/** An override that applies to an identity. */
export interface OverrideFor {
  readonly policy: string
  /** Which of the document's overrides it is, from 0. */
  readonly index: number
  readonly until?: string
  readonly reason?: string
}

/** The overrides and limits of a document for one identity, whatever the request. */
export interface DocumentFor {
  readonly overrides: readonly OverrideFor[]
  /** Limits that count such identities, by policy and tier, where the names of their keys may not show them. */
  readonly sharing: ReadonlyMap<string, readonly Limit[]>
}

/**
 * @param text a document that is right
 * @param identity as it is counted
 */
export async function documentFor(text: string, identity: string): Promise<DocumentFor> {
  const document = readDocument(text)
  const names = namesIn(document)
  const at = identity.indexOf('=')
  const [kind, value] = [identity.slice(0, at), identity.slice(at + 1)]
  const overrides: OverrideFor[] = []
  const sharing = new Map<string, readonly Limit[]>()
  let tierAtHand = ''
  const resolvers = {
    keys: objectOf(names.keys, (name) => () => (name === kind ? value : undefined)),
    tiers: objectOf(names.tiers, () => () => tierAtHand),
    costs: objectOf(names.costs, () => () => 1),
  }
  for (const [name, policy] of Object.entries(document.policies ?? {})) {
    const own = (document.overrides ?? []).flatMap((each, index) => (each.policy === name ? [{ ...each, index }] : []))
    // Every policy may apply to the client, by one request or another.
    const alone = { ...(policy as { readonly tiers?: object }), match: undefined }
    const loaded = await policies.from({
      object: { version: 1, policies: { [name]: alone }, overrides: own.map(({ index: _, ...each }) => each) },
      ...resolvers,
    })
    const found = new Set<number>()
    // Only code knows the tier of the client.
    for (const tier of alone.tiers ? Object.keys(alone.tiers) : ['']) {
      tierAtHand = tier
      const context = contextOf(kind, value)
      for (const { override } of await loaded.explain({ path: '/', ...(context.ip && { ip: context.ip }) })) {
        if (typeof override === 'number') found.add(override)
      }
      for (const limit of limitsOf(await loaded.match(context))) {
        const of = limit.policy ?? name
        // Where a policy has several of these, they may share a key.
        const isUnnamed = limit.carry !== undefined || kindOf(limit.algorithm)?.canBeJoint
        if ((limit.key?.kind ?? 'key') === kind && isUnnamed) {
          sharing.set(of, [...(sharing.get(of) ?? []), limit])
        }
      }
    }
    for (const i of found) {
      const { index, until, reason } = own[i] as { index: number; until?: string; reason?: string }
      overrides.push({ policy: name, index, ...(until && { until }), ...(reason && { reason }) })
    }
  }
  const unnamed = [...sharing].filter(([, limits]) => limits.length > 1 || limits[0]?.carry !== undefined)
  return { overrides, sharing: new Map(unnamed) }
}

/** An identity's use of such limits under a limiter of this name, for each key that exists. */
export async function usedOfSharing(
  store: RedisStore,
  limiter: string,
  identity: string,
  { sharing }: DocumentFor,
): Promise<readonly (readonly UsedLimit[])[]> {
  const at = identity.indexOf('=')
  const key = Object.assign(() => identity.slice(at + 1), { kind: identity.slice(0, at) })
  const all = await Promise.all(
    [...sharing].map(async ([policy, limits]) => {
      const own = limits.map((limit) => ({ ...limit, key }))
      const verdict = await createLimiter<unknown>({ name: limiter, store, limits: own }).peek(undefined, { cost: 0 })
      const keys = stateNamesOf(own).map(({ whole }) => whole)
      const byKey = new Map<string, UsedLimit[]>(keys.map((name) => [name, []]))
      for (const [i, { algorithm, limit, windowMs, capacity, remaining, resetAfterMs }] of verdict.limits.entries()) {
        const used = capacity - remaining
        const calendar = own[i]?.calendar?.window
        const found = {
          policy: `${limiter}/${policy}`,
          algorithm,
          limit,
          windowMs,
          capacity,
          ...(calendar && { calendar }),
          used,
          remaining,
          resetAfterMs,
        }
        byKey.get(keys[i] as string)?.push(found)
      }
      return [...byKey.values()]
    }),
  )
  return all.flat().filter((limits) => limits.some(({ resetAfterMs = 0 }) => resetAfterMs > 0))
}

// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
function limitsOf(matched: MatchedPolicies<any> | undefined): readonly Limit[] {
  if (!matched) return []
  // Each relaxed count has its own key, which shows its limit.
  if (matched.options.consistency) return [...limitsOf(matched.next), ...limitsOf(matched.reported)]
  return [...(matched.options.limits ?? []), ...limitsOf(matched.next), ...limitsOf(matched.reported)]
}

// biome-ignore lint/suspicious/noExplicitAny: as above
function contextOf(kind: string, value: string): HttpContext<any> {
  return {
    request: undefined,
    method: 'GET',
    path: '/',
    target: '/',
    // A group of addresses is looked up by its first address.
    ip: kind === 'ip' ? value.split('/', 1)[0] : undefined,
    route: undefined,
    response: UNSEEN_RESPONSE,
    header: () => undefined,
    signedCookie: () => undefined,
    getResponseHeader: () => undefined,
  }
}

function objectOf<Value>(names: Iterable<string>, value: (name: string) => Value): Record<string, Value> {
  return Object.fromEntries([...names].map((name) => [name, value(name)]))
}
