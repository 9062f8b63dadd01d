import { redisStore } from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll } from 'vitest'
import { startRedis } from '../support/redis-server.js'
import { agreementContract } from './agreement.js'
import { chargingContract } from './charging.js'
import { guaranteesContract } from './guarantees.js'
import { propertiesContract } from './properties.js'
import type { StoreUnderTest } from './store-under-test.js'
import { vectorsContract } from './vectors.js'

const server = await startRedis()
const client = new Redis(server.url)
const stores: { close(): Promise<void> }[] = []

const redis: StoreUnderTest = {
  name: 'Redis',
  make(clock) {
    const store = redisStore(client, { clock, timeoutMs: 5000 })
    stores.push(store)
    return store
  },
  async close() {
    for (const store of stores) await store.close()
    client.disconnect()
    await server.stop()
  },
  // Every step is a round trip; `SLUICE_RUNS` makes more of them.
  effort: 0.25,
}

vectorsContract(redis)
agreementContract(redis)
propertiesContract(redis)
chargingContract(redis)
guaranteesContract(redis)

afterAll(() => redis.close())
