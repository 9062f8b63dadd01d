import type { Composition } from '../limiter/limiter.js'
import { bans } from './bans/feature.js'
import { charges } from './charges/feature.js'
import { Limiter } from './limiter.js'
import { lists } from './lists/feature.js'
import { memoryStoreBy } from './memory-store.js'
import { meters } from './meters/feature.js'
import { offenders } from './offenders/feature.js'
import { queues } from './queues/feature.js'
import { relaxed } from './relaxed/feature.js'

/** All features of policies and limiters, in the order in which they are checked. `redis-parts.ts` lists those of Redis. */
export const ALL: Composition = {
  features: [lists, queues, relaxed, charges, meters, bans, offenders],
  Limiter,
  defaultStore: () => memoryStoreBy(),
  localStore: memoryStoreBy,
}
