import type { Composition } from '../limiter/composition.js'
import { policyBans } from './bans/ban-terms.js'
import { policyCharges } from './charges/charge-terms.js'
import { memoryStore, memoryStoreBy } from './memory-store.js'
import { policyTurns } from './queues/shared-turns-terms.js'
import { policyConsistency } from './relaxed/relaxed-terms.js'

/** All features of policies, limiters and guards, in the order of their checks. `redis-parts.ts` lists those of Redis. */
export const ALL: Composition = {
  features: [policyTurns, policyConsistency, policyCharges, policyBans],
  defaultStore: memoryStore,
  localStore: memoryStoreBy,
}
