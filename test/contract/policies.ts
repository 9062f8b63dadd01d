import {
  calendarMonth,
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
  calendar: [fixedWindow({ limit: 7, window: 'day', timeZone: 'Asia/Kolkata' })],
  weighted: [slidingWindow({ limit: 300, window: '10s' })],
  up: [slidingWindow({ limit: 7, window: '10s', segments: 2, rounding: 'up' })],
  strict: [slidingWindow({ limit: 7, window: '10s', segments: 5, edge: 'strict' })],
  dropped: [slidingWindow({ limit: 7, window: '10s', segments: 5, edge: 'dropped' })],
  gcra: [gcra({ limit: 7, window: '10s', burst: 5 })],
  interval: [tokenBucket({ capacity: 9, refill: 4, every: '3s', style: 'interval' })],
  queue: [leakyBucket({ leak: 3, every: '1s', capacity: 5, queue: true })],
  buckets: [
    gcra({ limit: 3, window: '1s' }),
    tokenBucket({ capacity: 9, refill: 4, every: '3s', style: 'interval' }),
    gcra({ limit: 20, window: '1m', burst: 12 }),
    leakyBucket({ leak: 3, every: '1s', capacity: 8, queue: true }),
  ],
  counters: [
    fixedWindow({ limit: 20, window: '1m' }),
    fixedWindow({ limit: 3, window: '1s' }),
    fixedWindow({ limit: 7, window: '10s', anchor: 'first-request' }),
  ],
  calendars: [
    fixedWindow({ limit: 5, window: 'day' }),
    fixedWindow({ limit: 3, window: '1s' }),
    calendarMonth(20, { timeZone: 'America/Sao_Paulo', startsOn: 31 }),
    fixedWindow({ limit: 12, window: 'week', startsOn: 'sunday' }),
  ],
  windows: [
    slidingWindow({ limit: 300, window: '1m' }),
    slidingWindow({ limit: 7, window: '10s', segments: 2, rounding: 'up' }),
    slidingWindow({ limit: 9, window: '10s', segments: 5, edge: 'strict' }),
    slidingWindow({ limit: 4, window: '2s', segments: 4, edge: 'dropped' }),
  ],
  joint: [
    slidingWindow({ limit: 12, window: '10s', reserve: 2 }),
    gcra({ limit: 30, window: '10s', unit: 'content-bytes' }),
    fixedWindow({ limit: 5, window: '2s' }),
    gcra({ limit: 7, window: '5s', reserve: { 1: 2, 2: 1 } }),
  ],
  permits: [concurrency({ limit: 4, ttl: '3s' })],
  mixed: [
    perSecond(3),
    gcra({ limit: 20, window: '1m' }),
    slidingWindow({ limit: 60, window: '1h', precision: '1m', edge: 'dropped' }),
    concurrency({ limit: 5, ttl: '2s' }),
  ],
  reserves: [
    gcra({ limit: 12, window: '10s', reserve: { 1: 3, 2: 2 } }),
    slidingLog({ limit: 9, window: '4s', reserve: 2 }),
    slidingWindow({ limit: 40, window: '10s', segments: 2 }),
    concurrency({ limit: 6, ttl: '3s', reserve: 1 }),
  ],
  units: [
    slidingLog({ limit: 6, window: '5s' }),
    slidingLog({ limit: 9, window: '5s', unit: 'tokens' }),
    slidingLog({ limit: 30, window: '20s', unit: 'tokens', reserve: 3 }),
    gcra({ limit: 8, window: '4s', unit: 'tokens', burst: 6 }),
    fixedWindow({ limit: 12, window: '10s', unit: 'cents' }),
    fixedWindow({ limit: 12, window: '10s' }),
    slidingWindow({ limit: 20, window: '6s', unit: 'cents', segments: 3, edge: 'strict' }),
    concurrency({ limit: 5, ttl: '2s' }),
  ],
  bodies: [
    slidingLog({ limit: 6, window: '5s' }),
    gcra({ limit: 50, window: '10s', unit: 'content-bytes', reserve: 5 }),
    fixedWindow({ limit: 40, window: '10s', unit: 'content-bytes' }),
  ],
}

/** Charged refusals and reserves exclude each other. */
export function waysToDeny(limits: readonly Limit<string>[]): readonly ('none' | 'charge')[] {
  return limits.some(({ reserve }) => reserve !== undefined) ? ['none'] : ['none', 'charge']
}

/** Mulberry32: for one seed, the same whole numbers from 0 to below `below`. */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}
