import { expect, test } from 'vitest'
import { type BlocksOptions, BlocksWorld } from './support/blocks-world.js'
import { ALL, type ExploreOptions, explore } from './support/explore.js'
import { redisOfWorlds } from './support/redis-of-worlds.js'

// How long a store remembers a block goes by this clock.
const redis = redisOfWorlds('performance')

const exploreBlocks = (options: BlocksOptions, moreThan: number, more?: ExploreOptions) =>
  explore(() => BlocksWorld.make(redis(), options), moreThan, more)

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
