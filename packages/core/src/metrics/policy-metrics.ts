import type { Histogram } from '../store/health.js'
import { type HistogramPoint, histogramMetric, type Labels, type Metric, numberMetric } from './described.js'
import { DURATION_BOUNDS, WAIT_BOUNDS } from './policy-counts.js'
import type { AbuseCounts, UseCounts } from './snapshot.js'

/** The label of a policy's metrics. */
const POLICY = ['policy']

/** Shares of a limit, as upper bounds: decisions that half of it, nine tenths, or all of it would have admitted. */
export const SHARES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1]
/** How finely shares are counted. */
const STEPS = 100

const inSeconds = (ms: number) => ms / 1000

/** The metrics of requests and policies. */
export const POLICY_METRICS: readonly Metric[] = [
  numberMetric(
    'sluice.requests',
    'counter',
    {
      unit: '{request}',
      help: 'Requests that were decided, by outcome, the limit that refused, and what decided.',
      labels: ['policy', 'tier', 'limit', 'outcome', 'source', 'reported'],
    },
    ({ decisions }) =>
      decisions.map(({ policy, tier, limit, outcome, source, reported, count }) => ({
        labels: { policy, tier, limit, outcome, source, reported: String(reported) },
        value: count,
      })),
  ),
  histogramMetric(
    'sluice.decision.duration',
    DURATION_BOUNDS.map(inSeconds),
    {
      unit: 's',
      help: 'Time from asking what decides until it has decided, of a sample of decisions.',
      labels: ['policy', 'source'],
    },
    ({ durations }) => durations.map(({ policy, source, histogram }) => seconds({ policy, source }, histogram)),
  ),
  histogramMetric(
    'sluice.limit.needed',
    SHARES,
    {
      unit: '1',
      help: 'Share of a limit that a request needed, with what was in use before it; above 1 it was refused.',
      labels: ['policy', 'tier', 'limit'],
    },
    ({ used }) => used.map(neededOf),
  ),
  numberMetric(
    'sluice.units',
    'counter',
    {
      unit: '{unit}',
      help: 'Units of your own, such as tokens, that were charged or refunded.',
      labels: ['policy', 'unit', 'outcome'],
    },
    ({ units }) =>
      units.flatMap(({ policy, unit, charged, refunded }) =>
        byOutcome(policy, { charged, refunded }).map(({ labels, value }) => ({ labels: { ...labels, unit }, value })),
      ),
  ),
  numberMetric(
    'sluice.queued_requests',
    'updowncounter',
    { unit: '{request}', help: 'Requests that wait for their turn.', labels: POLICY },
    ({ queues }) => queues.map(({ policy, waiting }) => ({ labels: { policy }, value: waiting })),
  ),
  histogramMetric(
    'sluice.request.time_in_queue',
    WAIT_BOUNDS.map(inSeconds),
    { unit: 's', help: 'Time that requests waited for their turn, however it ended.', labels: POLICY },
    ({ queues }) => queues.map(({ policy, histogram }) => seconds({ policy }, histogram)),
  ),
  numberMetric(
    'sluice.turns',
    'counter',
    {
      unit: '{request}',
      help: 'Requests whose wait in a queue ended, by how: admitted, refused, or the client left.',
      labels: ['policy', 'outcome'],
    },
    ({ queues }) =>
      queues.flatMap(({ policy, admitted, refused, left }) => byOutcome(policy, { admitted, refused, left })),
  ),
  numberMetric(
    'sluice.active_permits',
    'updowncounter',
    { unit: '{permit}', help: 'Permits of concurrency limits that are held.', labels: POLICY },
    ({ permits }) => permits.map(({ policy, active }) => ({ labels: { policy }, value: active })),
  ),
  numberMetric(
    'sluice.permits',
    'counter',
    {
      unit: '{permit}',
      help: 'Permits of concurrency limits that were taken, released, or lapsed unreleased.',
      labels: ['policy', 'outcome'],
    },
    ({ permits }) =>
      permits.flatMap(({ policy, taken, released, lapsed }) => byOutcome(policy, { taken, released, lapsed })),
  ),
  abuseMetric('sluice.strikes', '{strike}', 'Strikes that were counted.', 'strikes'),
  abuseMetric('sluice.bans', '{ban}', 'Bans that began.', 'bans'),
  abuseMetric('sluice.blocks', '{block}', 'Blocks that were made; without policy those of the whole store.', 'blocks'),
  abuseMetric('sluice.unblocks', '{block}', 'Blocks and bans that were ended before their time.', 'unblocks'),
]

function abuseMetric(name: string, unit: string, help: string, field: Exclude<keyof AbuseCounts, 'policy'>): Metric {
  return numberMetric(name, 'counter', { unit, help, labels: POLICY }, ({ abuse }) =>
    abuse.map((counts) => ({ labels: { policy: counts.policy }, value: counts[field] })),
  )
}

function byOutcome(policy: string, counts: Readonly<Record<string, number>>) {
  return Object.entries(counts).map(([outcome, value]) => ({ labels: { policy, outcome }, value }))
}

function seconds(labels: Labels, { counts, sum, count }: Histogram): HistogramPoint {
  return { labels, counts, sum: inSeconds(sum), count }
}

/** In coarser buckets: one for each percent would be a hundred series for each limit. */
export function neededOf({ policy, tier, limit, decisions, counts }: UseCounts): HistogramPoint {
  const coarse = new Array<number>(SHARES.length + 1).fill(0)
  let sum = 0
  let bucket = 0
  for (const [i, count] of counts.entries()) {
    while (bucket < SHARES.length && i >= Math.round((SHARES[bucket] as number) * STEPS)) bucket++
    coarse[bucket] = (coarse[bucket] as number) + count
    sum += count * Math.min(1, (i + 0.5) / STEPS)
  }
  return { labels: { policy, tier, limit }, counts: coarse, sum, count: decisions }
}
