import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { type Owned, singleClients } from '../../support/clients.js'
import { byEffort } from '../../support/effort.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { explore } from './support/explore.js'
import { type TurnsOptions, TurnsWorld } from './support/turns-world.js'

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

/** There are too many schedules to try them all: each waits and asks again, for as long as it takes. */
const SAMPLE = byEffort({ usual: 20, full: 3000 })

const exploreTurns = (options: TurnsOptions, sample = SAMPLE) =>
  explore(() => TurnsWorld.make(client.client, options), 0, { sample })

test('of two that wait in two processes the higher priority goes first once it is told of', async () => {
  await exploreTurns({
    waiters: [
      { process: 0, priority: 0 },
      { process: 1, priority: 1 },
    ],
    slow: 2,
  })
})

test('two classes in each process, and one that does not wait in between', async () => {
  await exploreTurns({
    waiters: [
      { process: 0, priority: 0 },
      { process: 1, priority: 1 },
      { process: 0, priority: 2 },
      { process: 1, priority: 0 },
    ],
    beside: 1,
    slow: 2,
  })
})

test('those that leave hold up no others, and are told of no more', async () => {
  await exploreTurns({
    waiters: [
      { process: 0, priority: 1, leaves: true },
      { process: 1, priority: 0 },
      { process: 1, priority: 2, leaves: true },
    ],
    slow: 2,
  })
})

test('a process that dies holds up others until what it told lapses, and no longer', async () => {
  await exploreTurns({
    waiters: [
      { process: 0, priority: 2 },
      { process: 1, priority: 0 },
      { process: 1, priority: 1 },
    ],
    dies: true,
    slow: 2,
  })
})

test('the explorer notices decisions that do not heed what waits', async () => {
  const waiters = [
    { process: 0, priority: 0 },
    { process: 1, priority: 1 },
  ] as const
  await expect(exploreTurns({ waiters, beside: 2, heedsNone: true }, 200)).rejects.toThrow(/before/)
})

test('whatever command or reply is lost, all that wait are served or told, and one at a time', async () => {
  await exploreTurns({
    waiters: [
      { process: 0, priority: 0 },
      { process: 1, priority: 1 },
      { process: 0, priority: 2 },
    ],
    faults: 1,
    slow: 1,
  })
})
