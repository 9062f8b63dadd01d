import { gcra, type Limit, leakyBucket, slidingWindow, type Verdict } from '@sluice/core'

/**
 * Four limits hold what all processes on a store share of a key, beside the limits of the user.
 *
 * `paced` spaces requests out: each adds the pause after it, in microseconds, and waits for those before it.
 *
 * `slowed` is a number that any process raises when a service refuses without saying for how long, and that each decision reports.
 *
 * `sent` counts the requests of the last second: it refuses none, and tells the rate at which a service refuses.
 *
 * `slowing` has room once in two seconds: several processes that are refused at once raise `slowed` once.
 *
 * A thousand units of `slowed` are one halving of the rate, from 1,000 a second; they drain in half a minute, which
 * doubles the rate.
 */
export const PACED = 'paced-us'
export const SLOWED = 'slowed'
export const SENT = 'sent'
export const SLOWING = 'slowing'
/** Units that are counted beside those of the user. */
export const OWN_UNITS: readonly string[] = [PACED, SLOWED, SENT, SLOWING]

const UNITS_PER_HALVING = 1000
const MAX_SENT = 1_000_000
const MAX_SLOWED = 16 * UNITS_PER_HALVING

export function sharedLimits(): Limit<string>[] {
  return [
    leakyBucket({ name: 'paced', limit: 1_000_000, window: '1s', capacity: 3_600_000_000, queue: true, unit: PACED }),
    gcra({ name: SLOWED, limit: UNITS_PER_HALVING, window: '30s', burst: MAX_SLOWED, unit: SLOWED }),
    slidingWindow({ name: SENT, limit: MAX_SENT, window: '1s', unit: SENT }),
    gcra({ name: SLOWING, limit: 1, window: '2s', unit: SLOWING }),
  ]
}

/** How far requests are slowed, as a decision reports it; undefined where the store is away, or a block decided. */
export function slowedIn(verdict: Verdict): number | undefined {
  return usedIn(verdict, SLOWED, MAX_SLOWED)
}

/** The requests that all processes have sent in the last second. */
export function sentIn(verdict: Verdict): number {
  return usedIn(verdict, SENT, MAX_SENT) ?? 0
}

function usedIn({ limits }: Verdict, limit: string, capacity: number): number | undefined {
  const remaining = limits.find(({ name }) => name === limit)?.remaining
  return remaining === undefined ? undefined : capacity - remaining
}

/** The pause between two requests, in ms. */
export function slowedIntervalMs(slowed: number): number {
  return slowed > 0 ? 2 ** (slowed / UNITS_PER_HALVING) : 0
}

/** The units to add after a refusal: half the rate, and at most half of that at which the service refused. */
export function slowerBy(slowed: number, sentInLastSecond: number): number {
  const halfOfRate = Math.round(UNITS_PER_HALVING * Math.log2(2000 / Math.max(1, sentInLastSecond)))
  return Math.min(MAX_SLOWED, Math.max(slowed + UNITS_PER_HALVING, halfOfRate)) - slowed
}
