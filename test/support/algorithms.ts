import {
  concurrency,
  fixedWindow,
  gcra,
  type Limit,
  leakyBucket,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'

/** One limit of every algorithm and state shape, of `limit` units per `windowMs`. */
export const algorithms: Record<string, (limit: number, windowMs: number) => Limit<string>> = {
  slidingLog: (limit, window) => slidingLog({ limit, window }),
  'fixedWindow by clock': (limit, window) => fixedWindow({ limit, window }),
  'fixedWindow by first request': (limit, window) => fixedWindow({ limit, window, anchor: 'first-request' }),
  'strict slidingWindow': (limit, window) => slidingWindow({ limit, window, segments: 4, edge: 'strict' }),
  'weighted slidingWindow': (limit, window) => slidingWindow({ limit, window, segments: 1, edge: 'weighted' }),
  'dropped slidingWindow': (limit, window) => slidingWindow({ limit, window, segments: 4, edge: 'dropped' }),
  gcra: (limit, window) => gcra({ limit, window }),
  'greedy tokenBucket': (limit, window) => tokenBucket({ limit, window, capacity: limit }),
  'interval tokenBucket': (limit, window) => tokenBucket({ limit, window, style: 'interval' }),
  leakyBucket: (limit, window) => leakyBucket({ limit, window }),
  'leakyBucket with a queue': (limit, window) => leakyBucket({ limit, window, queue: true }),
  concurrency: (limit, ttl) => concurrency({ limit, ttl }),
}
