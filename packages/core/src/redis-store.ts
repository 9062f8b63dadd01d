import { assemble } from './features/redis-parts.js'
import { RedisStore } from './features/redis-store.js'
import type { RedisClient } from './redis/clients/connect.js'
import type { RedisStoreOptions } from './redis/options.js'

/**
 * A store in Redis, shared by every process and machine that uses the same server or cluster.
 *
 * Takes a client of `ioredis` (single, Sentinel or Cluster; 5.4 or later) or of `redis` (single or cluster; 5 or
 * later). The store opens its own connection beside the client, which ends with `close()` or with the client. All
 * decisions of one turn of the event loop go in one EVALSHA. Needs Redis 6.2 or later.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): RedisStore {
  const store = new RedisStore(assemble(client, options))
  options.report?.start(store)
  return store
}
