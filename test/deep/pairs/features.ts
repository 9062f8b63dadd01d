import { type Case, isBucket, type LimitOf, limitsOf, type PolicyOf, unitsOf } from './case.js'
import table from './table.json' with { type: 'json' }

export type Feature = keyof typeof table.features
export const FEATURES = Object.keys(table.features) as readonly Feature[]

/** The pairs that are rejected, each with the message. All others work. */
export const REJECTED = table.rejected as unknown as readonly (readonly [Feature, Feature, string])[]

const some = (holds: (limit: LimitOf) => boolean) => (of: Case) => of.policies.flatMap(limitsOf).some(holds)
const field = (name: keyof PolicyOf) => (of: Case) => of.policies.some((policy) => policy[name] !== undefined)
const event = (name: Case['events'][number]['do']) => (of: Case) => of.events.some((each) => each.do === name)
const algorithm = (name: LimitOf['algorithm']) => some((limit) => limit.algorithm === name && limit.window !== 'day')

/** Whether a case has a feature. */
export const HAS: Record<Feature, (of: Case) => boolean> = {
  slidingLog: algorithm('slidingLog'),
  slidingWindow: algorithm('slidingWindow'),
  fixedWindow: algorithm('fixedWindow'),
  'windows of the calendar': some(({ window }) => window === 'day'),
  buckets: some(isBucket),
  concurrency: algorithm('concurrency'),
  'several limits': ({ policies }) => policies.some(({ limits, tiers }) => (limits ?? tiers?.free ?? []).length > 1),
  'keys of limits': some(({ key }) => key !== undefined),
  'units by name': ({ policies }) => policies.some((policy) => unitsOf(policy).length > 0),
  estimate: some(({ estimate }) => estimate !== undefined),
  reserve: some(({ reserve }) => reserve !== undefined),
  lease: some(({ lease }) => lease !== undefined),
  tiers: field('tiers'),
  onDeny: field('onDeny'),
  consistency: field('consistency'),
  sharedTurns: field('sharedTurns'),
  outages: ({ events }) => events.some((each) => each.do === 'outage'),
  charges: ({ keep }) => keep !== undefined,
  ban: field('ban'),
  count: field('count'),
  'report mode': ({ policies }) => policies.some(({ enforce }) => enforce && 'mode' in enforce),
  percent: ({ policies }) => policies.some(({ enforce }) => enforce && 'percent' in enforce),
  allow: field('allow'),
  deny: field('deny'),
  anonymous: field('anonymous'),
  documents: ({ way }) => way === 'document',
  'several policies': ({ policies }) => policies.length > 1,
  peek: event('peek'),
  settle: event('settle'),
  meter: event('meter'),
  refund: event('refund'),
  release: event('release'),
  renew: event('renew'),
  reset: event('reset'),
  block: event('block'),
  strike: event('strike'),
  'clients that leave': event('leave'),
  pipelining: ({ events }) => events.some((each) => 'behind' in each),
  upgrades: ({ events }) => events.some((each) => 'upgrade' in each),
}

/** The messages of which one rejects a case, because of pairs in one policy. None if it is accepted. */
export function rejectionsOf(of: Case): string[] {
  const apart = of.policies.map((policy): Case => ({ ...of, policies: [policy] }))
  return REJECTED.flatMap(([one, other, message]) =>
    apart.some((each) => HAS[one](each) && HAS[other](each)) ? [message] : [],
  )
}

type Patch = (of: Case) => Case
const policy =
  (change: (policy: PolicyOf) => PolicyOf): Patch =>
  (of) => ({ ...of, policies: of.policies.map(change) })
const more = (limit: LimitOf) => policy((each) => ({ ...each, limits: [...limitsOf(each), limit] }))
const first = (fields: Partial<LimitOf>) =>
  policy((each) => ({ ...each, limits: limitsOf(each).map((limit, l) => (l === 0 ? { ...limit, ...fields } : limit)) }))
const rate = { limit: 100, window: 60_000 }
const fields = (options: Partial<PolicyOf>) => policy((each) => ({ ...each, ...options }))

/** A case with one window, and with these features in addition. Those that are methods add nothing. */
export function caseWith(...features: readonly Feature[]): Case {
  const base: Case = { way: 'rateLimit', policies: [{ limits: [{ algorithm: 'fixedWindow', ...rate }] }], events: [] }
  return (Object.keys(PATCHES) as Feature[]).reduce(
    (of, name) => (features.includes(name) ? (PATCHES[name] as Patch)(of) : of),
    base,
  )
}

const PATCHES: Partial<Record<Feature, Patch>> = {
  slidingLog: more({ algorithm: 'slidingLog', ...rate }),
  slidingWindow: more({ algorithm: 'slidingWindow', ...rate, segments: 1, edge: 'strict' }),
  'windows of the calendar': more({ algorithm: 'fixedWindow', limit: 100, window: 'day' }),
  buckets: more({ algorithm: 'gcra', ...rate }),
  concurrency: more({ algorithm: 'concurrency', limit: 5, ttl: 60_000 }),
  'several limits': more({ algorithm: 'fixedWindow', limit: 10, window: 1000 }),
  'keys of limits': more({ algorithm: 'fixedWindow', ...rate, key: 'tenant' }),
  'units by name': more({ algorithm: 'fixedWindow', ...rate, unit: 'tokens' }),
  estimate: first({ estimate: 'cap' }),
  reserve: first({ reserve: { 1: 5 } }),
  lease: policy(({ limits = [], ...each }) => {
    // All limits count the same unit.
    const unit = limits.flatMap(({ unit }) => unit ?? [])[0]
    const leased = (limit: LimitOf) => ({ ...limit, ...(unit && { unit }), lease: { size: 5, ttl: 1000 } })
    return {
      ...each,
      limits: limits.map((limit) => (limit.algorithm === 'concurrency' ? limit : leased(limit))),
    }
  }),
  onDeny: fields({ onDeny: 'charge' }),
  consistency: fields({ consistency: { syncEvery: 10 } }),
  sharedTurns: fields({ sharedTurns: true }),
  charges: (of) => ({ ...of, keep: 60_000 }),
  ban: fields({ ban: { after: 3, within: 1000, for: [1000] } }),
  count: fields({ count: { only: 'failure', within: 1 } }),
  'report mode': fields({ enforce: { mode: 'report' } }),
  percent: fields({ enforce: { percent: 100 } }),
  allow: fields({ allow: ['eve'] }),
  deny: fields({ deny: ['eve'] }),
  anonymous: fields({ anonymous: 'skip' }),
  tiers: policy(({ limits = [], ...each }) => ({ ...each, tiers: { free: limits, pro: limits } })),
  documents: (of) => ({ ...of, way: 'document' }),
  'several policies': (of) => ({ ...of, way: 'document', policies: [...of.policies, ...of.policies] }),
}

/** Whether it is in the options of policies; the others are methods. */
export function isOption(feature: Feature): boolean {
  return feature in PATCHES || feature === 'fixedWindow'
}
