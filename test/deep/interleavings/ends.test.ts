import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, test, vi } from 'vitest'
import { type Owned, singleClients } from '../../support/clients.js'
import { byEffort } from '../../support/effort.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { type EndsOptions, EndsWorld } from './support/ends-world.js'
import { explore } from './support/explore.js'

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
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** There are too many schedules to try them all: three processes look every second. */
const SAMPLE = byEffort({ quick: 20, usual: 50, full: 3000 })

const exploreEnds = (options: EndsOptions, sample = SAMPLE) =>
  explore(() => EndsWorld.make(client.client, options), 0, { sample })

test('an unblocked identity is refused for one look at most, whatever is stopped and flushed', async () => {
  await exploreEnds({ deed: 'unblock', flushes: 2, seconds: 4 })
})

test('an end that one process has read from another outlives that', async () => {
  await exploreEnds({ deed: 'unblock', flushes: 2, seconds: 4, leaves: true })
})

test('what removeAll has ended is refused for one look at most', async () => {
  await exploreEnds({ deed: 'removeAll', flushes: 2, seconds: 4 })
})

test('the same where Redis comes back as it was before', async () => {
  await exploreEnds({ deed: 'unblock', flushes: 2, seconds: 4, crashes: true, leaves: true })
  await exploreEnds({ deed: 'removeAll', flushes: 2, seconds: 4, crashes: true })
})

test('an identity that was forgotten is refused for one look at most, and its name is nowhere', async () => {
  await exploreEnds({ deed: 'forget', flushes: 2, seconds: 4, leaves: true })
  await exploreEnds({ deed: 'forget', flushes: 2, seconds: 4, crashes: true, leaves: true })
})
