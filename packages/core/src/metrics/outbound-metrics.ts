import { type Metric, numberMetric } from './described.js'
import type { OutboundCounts } from './snapshot.js'

const OUTCOMES = ['accepted', 'refused', 'final', 'failed', 'unsent'] as const

/** The metrics of calls to other services. */
export const OUTBOUND_METRICS: readonly Metric[] = [
  numberMetric(
    'sluice.outbound.responses',
    'counter',
    {
      unit: '{response}',
      help: 'Requests to other services by the response: accepted, refused by a rate limit, refused for good, none, or not sent.',
      labels: ['policy', 'outcome'],
    },
    ({ outbound }) =>
      outbound.flatMap(({ policy, ...counts }) =>
        OUTCOMES.map((outcome) => ({ labels: { policy, outcome }, value: counts[outcome] })),
      ),
  ),
  numberMetric(
    'sluice.outbound.held_until',
    'gauge',
    {
      unit: 's',
      help: 'Latest instant until which a service wants no requests, in seconds since 1970; 0 if none did.',
      labels: ['policy'],
      acrossProcesses: 'max',
    },
    ({ outbound }) => outbound.map(({ policy, heldUntil }) => ({ labels: { policy }, value: heldUntil / 1000 })),
  ),
  quotaMetric('limit', 'max', 'Units per window of a limit, as a service told it last.'),
  quotaMetric('remaining', 'min', 'Units left of a limit, as a service told it last.'),
]

function quotaMetric(
  field: 'limit' | 'remaining',
  acrossProcesses: 'max' | 'min',
  help: string,
): (typeof OUTBOUND_METRICS)[number] {
  return numberMetric(
    `sluice.outbound.quota.${field}`,
    'gauge',
    { unit: '{unit}', help, labels: ['policy', 'limit'], acrossProcesses },
    ({ outbound }) => outbound.flatMap((counts) => toldBy(counts, field)),
  )
}

function toldBy({ policy, limits }: OutboundCounts, field: 'limit' | 'remaining') {
  return limits.flatMap(({ name, [field]: value }) =>
    value === undefined ? [] : [{ labels: { policy, limit: name }, value }],
  )
}
