import {
  concurrency,
  fixedWindow,
  gcra,
  type KeyFunction,
  type LeaseOptions,
  type Limit,
  leakyBucket,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'
import type { LimitSpec } from '../support/oracle/spec.js'

/** The limit that a user would write for an oracle's `spec`, optionally with a key, a lease or a unit of its own. */
export function limitOf<Subject>(
  spec: LimitSpec,
  key?: KeyFunction<Subject>,
  lease?: LeaseOptions,
  unit = 'requests',
): Limit<Subject> {
  const { limit, window } = spec
  const common = key ? { key } : {}
  const own = { ...common, unit, ...(lease && { lease }) }
  switch (spec.algorithm) {
    case 'slidingLog':
      return slidingLog({ limit, window, ...own })
    case 'fixedWindow':
      return fixedWindow({ limit, window, anchor: spec.anchor, ...own })
    case 'slidingWindow': {
      const { segments, edge, rounding = 'down' } = spec
      return slidingWindow({ limit, window, segments, edge, rounding, ...own })
    }
    case 'gcra':
      return gcra({ limit, window, burst: spec.capacity, ...own })
    case 'tokenBucket':
      return tokenBucket({ refill: limit, every: window, capacity: spec.capacity, style: spec.style, ...own })
    case 'leakyBucket':
      return leakyBucket({ leak: limit, every: window, capacity: spec.capacity, queue: spec.queue, ...own })
    case 'concurrency':
      return concurrency({ limit, ttl: window, ...common })
  }
}
