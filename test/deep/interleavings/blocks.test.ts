import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { type Owned, singleClients } from '../../support/clients.js'
import { byEffort } from '../../support/effort.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { type BlocksOptions, BlocksWorld } from './support/blocks-world.js'
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
// How long a store remembers a block goes by this clock.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const exploreBlocks = (options: BlocksOptions) => explore(() => BlocksWorld.make(client.client, options))

test('a block holds for every decision that is asked for after it, whatever a store remembers', async () => {
  const decisions = byEffort({ usual: 1, full: 2 })
  const { schedules } = await exploreBlocks({ decisions, deeds: ['block'], forgets: true })
  expect(schedules).toBeGreaterThan(byEffort({ usual: 50, full: 5000 }))
})

test('a block is over when it is lifted, and holds again with the next', async () => {
  const deeds = byEffort({ usual: ['block', 'unblock'] as const, full: ['block', 'unblock', 'block'] as const })
  const { schedules } = await exploreBlocks({ decisions: 1, deeds })
  expect(schedules).toBeGreaterThan(byEffort({ usual: 100, full: 1000 }))
})

test('a block holds in the process that blocks, too, until it ends', async () => {
  const ends = byEffort({ usual: false, full: true })
  const { schedules } = await exploreBlocks({ decisions: 1, beside: 1, deeds: ['block'], ends })
  expect(schedules).toBeGreaterThan(byEffort({ usual: 50, full: 1000 }))
})

test('a block holds when Redis loses its scripts at any moment, and nothing is charged twice', async () => {
  const { schedules } = await exploreBlocks({ decisions: 1, deeds: ['block'], losesScripts: true })
  expect(schedules).toBeGreaterThan(100)
})

test('a block that Redis has heard of holds, whatever command or reply is lost', async () => {
  const deeds = byEffort({ usual: ['block'] as const, full: ['block', 'unblock'] as const })
  const { schedules } = await exploreBlocks({ decisions: 1, deeds, faults: 1 })
  expect(schedules).toBeGreaterThan(byEffort({ usual: 100, full: 1000 }))
})

test('the explorer notices a block whose marker is lost', async () => {
  const exploring = exploreBlocks({ decisions: 1, deeds: ['block'], losesMarker: true })
  await expect(exploring).rejects.toThrow(/let through a block/)
})
