import type { LimiterFeature } from '../../limiter/engine.js'
import { LimiterQueues, QUEUES } from './limiter-queues.js'
import { addSharedTurns } from './shared-turns-terms.js'

/** Places in a queue: `respond: queue()`, `acquire()`, `sharedTurns`, and `leakyBucket` with `queue`. */
export const queues: LimiterFeature = {
  policyOptions: ['sharedTurns'],
  policy: addSharedTurns,
  engine(engine) {
    const queues = new LimiterQueues(engine)
    engine.parts.set(QUEUES, queues)
    return { room: (request) => queues.wake(request) }
  },
}
