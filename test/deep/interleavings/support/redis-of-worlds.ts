import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, vi } from 'vitest'
import { type Owned, singleClients } from '../../../support/clients.js'
import { freezes } from '../../../support/inside.js'
import { type RedisServer, startRedis } from '../../../support/redis-server.js'

type Faked = 'setTimeout' | 'clearTimeout' | 'setInterval' | 'clearInterval' | 'performance'

/** A connected client of a Redis for the worlds of a file. Fakes the named clocks and timers for each test. */
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
    // An empty list would fake all of them.
    if (faked.length > 0) vi.useFakeTimers({ toFake: faked })
  })
  beforeEach(() => {
    // The time between two steps of a world is no pause of its processes.
    vi.spyOn(freezes, 'pauses', 'get').mockReturnValue(0)
    vi.spyOn(freezes, 'count', 'get').mockReturnValue(0)
  })
  afterEach(() => {
    vi.restoreAllMocks()
    vi.useRealTimers()
  })
  return () => client.client
}
