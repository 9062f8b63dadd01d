import { expect, test } from 'vitest'
import { type BlocksOptions, BlocksWorld } from './support/blocks-world.js'
import { ALL, type ExploreOptions, explore } from './support/explore.js'
import { redisOfWorlds } from './support/redis-of-worlds.js'

// A store remembers a block by this clock.
const redis = redisOfWorlds('performance')

const exploreBlocks = (options: BlocksOptions, moreThan: number, more?: ExploreOptions) =>
  explore(() => BlocksWorld.make(redis(), options), moreThan, more)

test('a block refuses every later decision, whatever a store remembers', async () => {
  await exploreBlocks({ decisions: 2, deeds: ['block'], forgets: true }, 5000)
})

test('a block ends when it is lifted, and the next one holds', async () => {
  await exploreBlocks({ decisions: 1, deeds: ['block', 'unblock', 'block'] }, 1000)
})

test('a block also holds in the process that made it, until it ends', async () => {
  await exploreBlocks({ decisions: 1, beside: 1, deeds: ['block'], ends: true }, 1000)
})

test('a block holds when Redis loses its scripts at any moment, and no decision is charged twice', async () => {
  await exploreBlocks({ decisions: 1, deeds: ['block'], losesScripts: true }, 100)
})

test('a block that has reached Redis holds, whatever command or reply is lost', async () => {
  await exploreBlocks({ decisions: 1, deeds: ['block', 'unblock'], faults: 1 }, 1000)
})

test('the explorer detects a block whose marker is lost', async () => {
  const exploring = exploreBlocks({ decisions: 1, deeds: ['block'], losesMarker: true }, 0, ALL)
  await expect(exploring).rejects.toThrow(/let through a block/)
})
