import {
  concurrency,
  fixedWindow,
  gcra,
  type Limit,
  type Limiter,
  leakyBucket,
  type Store,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'
import { createLimiter } from './create-limiter.js'

/** Limits of one policy by an amount. Versions of a document may differ in the amount and still share counts. */
export type LimitsOf = (amount: number) => readonly Limit[]

/** Every kind of state, alone and shared. */
export const CARRIED: Readonly<Record<string, LimitsOf>> = {
  'an exact log': (limit) => [slidingLog({ limit, window: '10s' })],
  'a log of two limits': (limit) => [
    slidingLog({ limit, window: '10s' }),
    slidingLog({ limit: 3 + (limit % 5), window: '2s' }),
  ],
  'a fixed window': (limit) => [fixedWindow({ limit, window: '10s' })],
  'a window from the first request on': (limit) => [fixedWindow({ limit, window: '10s', anchor: 'first-request' })],
  'a weighted window': (limit) => [slidingWindow({ limit, window: '10s' })],
  'a strict window': (limit) => [slidingWindow({ limit, window: '10s', segments: 5, edge: 'strict' })],
  'a window that drops its edge': (limit) => [slidingWindow({ limit, window: '10s', segments: 4, edge: 'dropped' })],
  GCRA: (limit) => [gcra({ limit, window: '10s' })],
  'GCRA with a burst': (limit) => [gcra({ limit, window: '10s', burst: Math.max(1, Math.floor(limit / 3)) })],
  'a token bucket that holds more than it refills': (limit) => [
    tokenBucket({ capacity: 1000, refill: limit, every: '10s' }),
  ],
  'a token bucket at intervals': (limit) => [tokenBucket({ refill: limit, every: '10s', style: 'interval' })],
  'a leaky bucket': (limit) => [leakyBucket({ leak: limit, every: '10s' })],
  'requests in flight': (limit) => [concurrency({ limit, ttl: '10s' })],
  'limits under one key': (limit) => [
    gcra({ limit, window: '10s' }),
    fixedWindow({ limit: 2 * limit, window: '1m' }),
    slidingWindow({ limit: 3 * limit, window: '30s', segments: 3, edge: 'strict' }),
  ],
  'limits of every kind': (limit) => [
    slidingLog({ limit, window: '10s' }),
    gcra({ limit, window: '20s', name: 'rate' }),
    concurrency({ limit, ttl: '5s', name: 'flight' }),
  ],
}

/** Limits as a document makes them: their counts remain when their amounts change. */
export function carried(limits: readonly Limit[]): readonly Limit[] {
  return limits.map((limit) => Object.freeze({ ...limit, policy: 'api', carry: '' }))
}

/** One limiter for each amount, as in processes with different versions, or in one process before and after a change. */
export function versionsOn(store: Store, limitsOf: LimitsOf, amounts: readonly number[]): readonly Limiter[] {
  return amounts.map((amount) => createLimiter({ name: 'carried', store, limits: [...carried(limitsOf(amount))] }))
}
