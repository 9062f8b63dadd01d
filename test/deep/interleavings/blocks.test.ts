import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { type Owned, singleClients } from '../../support/clients.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { type BlocksOptions, BlocksWorld } from './support/blocks-world.js'
import { ALL, type ExploreOptions, explore } from './support/explore.js'

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

const exploreBlocks = (options: BlocksOptions, moreThan: number, more?: ExploreOptions) =>
  explore(() => BlocksWorld.make(client.client, options), moreThan, more)

test('a block holds for every decision that is asked for after it, whatever a store remembers', async () => {
  await exploreBlocks({ decisions: 2, deeds: ['block'], forgets: true }, 5000)
})

test('a block is over when it is lifted, and holds again with the next', async () => {
  await exploreBlocks({ decisions: 1, deeds: ['block', 'unblock', 'block'] }, 1000)
})

test('a block holds in the process that blocks, too, until it ends', async () => {
  await exploreBlocks({ decisions: 1, beside: 1, deeds: ['block'], ends: true }, 1000)
})

test('a block holds when Redis loses its scripts at any moment, and nothing is charged twice', async () => {
  await exploreBlocks({ decisions: 1, deeds: ['block'], losesScripts: true }, 100)
})

test('a block that Redis has heard of holds, whatever command or reply is lost', async () => {
  await exploreBlocks({ decisions: 1, deeds: ['block', 'unblock'], faults: 1 }, 1000)
})

test('the explorer notices a block whose marker is lost', async () => {
  const exploring = exploreBlocks({ decisions: 1, deeds: ['block'], losesMarker: true }, 0, ALL)
  await expect(exploring).rejects.toThrow(/let through a block/)
})
