import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, vi } from 'vitest'
import { type Owned, singleClients } from '../../../support/clients.js'
import { type RedisServer, startRedis } from '../../../support/redis-server.js'

type Faked = 'setTimeout' | 'clearTimeout' | 'setInterval' | 'clearInterval' | 'performance'

/** A Redis for the worlds of a file, to which its client is connected, and for each test the clocks and timers that are faked. */
export function redisOfWorlds(...faked: Faked[]): () => Redis {
  let redis: RedisServer
  let client: Owned<Redis>
  beforeAll(async () => {
    redis = await startRedis()
    client = singleClients['ioredis 6'](redis.port)
    await client.ready
  })
  afterAll(async () => {
    client.close()
    await redis.stop()
  })
  beforeEach(() => {
    // None named would be all.
    if (faked.length > 0) vi.useFakeTimers({ toFake: faked })
  })
  afterEach(() => {
    vi.useRealTimers()
  })
  return () => client.client
}
