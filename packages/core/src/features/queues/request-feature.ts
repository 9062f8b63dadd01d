import type { GuardFeature } from '../../http/guard/guard-feature.js'
import { queues } from './feature.js'
import { RequestQueues } from './request-queues.js'

/** Queues, for requests. */
export const requestQueues: GuardFeature = {
  ...queues,
  guard: (basis) => ({ waits: new RequestQueues(basis), onlyDecides: () => true }),
}
