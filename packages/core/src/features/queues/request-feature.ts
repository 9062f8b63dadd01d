import type { GuardFeature } from '../../http/guard/guard-feature.js'
import { RequestQueues } from './request-queues.js'

/** Queues, for requests. */
export const requestQueues: GuardFeature = {
  guard: (basis) => ({ waits: new RequestQueues(basis), onlyDecides: () => true }),
}
