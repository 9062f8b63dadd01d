import {
  concurrency,
  fixedWindow,
  gcra,
  type Limit,
  leakyBucket,
  perHour,
  perMinute,
  perSecond,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'

/** Policies for long walks: every algorithm with every option, alone and together. */
export const POLICIES: Record<string, readonly Limit<string>[]> = {
  log: [slidingLog({ limit: 7, window: '10s' })],
  logs: [perSecond(3), perMinute(20), perHour(50)],
  fixed: [fixedWindow({ limit: 7, window: '10s' })],
  opened: [fixedWindow({ limit: 7, window: '10s', anchor: 'first-request' })],
  weighted: [slidingWindow({ limit: 300, window: '10s' })],
  up: [slidingWindow({ limit: 7, window: '10s', segments: 2, rounding: 'up' })],
  strict: [slidingWindow({ limit: 7, window: '10s', segments: 5, edge: 'strict' })],
  dropped: [slidingWindow({ limit: 7, window: '10s', segments: 5, edge: 'dropped' })],
  gcra: [gcra({ limit: 7, window: '10s', burst: 5 })],
  interval: [tokenBucket({ capacity: 9, refill: 4, every: '3s', style: 'interval' })],
  queue: [leakyBucket({ leak: 3, every: '1s', capacity: 5, queue: true })],
  places: [concurrency({ limit: 4, ttl: '3s' })],
  mixed: [
    perSecond(3),
    gcra({ limit: 20, window: '1m' }),
    slidingWindow({ limit: 60, window: '1h', precision: '1m', edge: 'dropped' }),
    concurrency({ limit: 5, ttl: '2s' }),
  ],
}

/** Mulberry32: the same whole numbers, from 0 to below what is asked for, for the same seed. */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}
