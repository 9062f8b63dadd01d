import { INSIDE } from '../../limiter/limiter.js'
import type { LeanFeature } from '../lean/lean-feature.js'
import { acquire } from './acquire.js'
import type { AcquireOptions } from './acquire-options.js'
import { queues as limiter } from './feature.js'
import { requestQueues as guard } from './request-feature.js'

/** `acquire`, `respond: queue()`, `sharedTurns`, and `leakyBucket` with `queue`. */
export const queues: LeanFeature<'queues'> = {
  name: 'queues',
  limiter,
  guard,
  extend: (Base) =>
    class<Subject> extends Base<Subject> {
      async acquire(subject: Subject, options: AcquireOptions = {}) {
        return acquire(this[INSIDE], subject, options)
      }
    },
}
