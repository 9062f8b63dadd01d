// Runs alone: it takes over the timers of its process.
import { expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { explore } from './support/explore.js'
import { redisOfWorlds } from './support/redis-of-worlds.js'
import { type RelaxedOptions, RelaxedWorld } from './support/relaxed-world.js'

const redis = redisOfWorlds('setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance')

/** Each decision and exchange is a separate command, which makes too many schedules to try all. */
const SAMPLE = byEffort({ usual: 20, full: 3000 })

const exploreRelaxed = (options: RelaxedOptions, sample = SAMPLE) =>
  explore(() => RelaxedWorld.make(redis(), options), 0, { sample })

test('one process with relaxed consistency decides exactly as Redis would, in the order of its requests', async () => {
  await exploreRelaxed({ requests: [['k', 'k', 'k', 'k']], limit: 3, rounds: 1 })
})

test('two processes with relaxed consistency each admit at most the limit, and every unit is charged once', async () => {
  await exploreRelaxed({
    requests: [
      ['k', 'k'],
      ['k', 'k'],
    ],
    limit: 4,
    counted: 2,
    rounds: 1,
  })
})

test('a decision by Redis includes earlier local counts of its process', async () => {
  await exploreRelaxed({ requests: [['k', 'k', 'other', 'k', 'other']], shared: 6, counted: 2, rounds: 1 })
  await exploreRelaxed({ requests: [['k', 'k', 'k']], deeds: ['unblock'], counted: 2, rounds: 1 })
})

test('a refund of a relaxed charge counts, whether its charge was sent before or not', async () => {
  await exploreRelaxed({ requests: [['k', 'k']], counted: 2, deeds: ['refund'], rounds: 2 })
})

test('no relaxed count from before a reset is sent after it', async () => {
  await exploreRelaxed({ requests: [['k', 'k', 'k']], counted: 2, deeds: ['reset'], rounds: 2 })
})

test('a block holds in its process, and earlier relaxed counts are charged', async () => {
  await exploreRelaxed({ requests: [['k', 'k', 'k']], counted: 2, deeds: ['block', 'unblock'], rounds: 1 })
})

test('relaxed counts are charged at most once when a command or reply is lost', async () => {
  await exploreRelaxed({ requests: [['k', 'k', 'k']], counted: 2, rounds: 2, faults: 1 })
  await exploreRelaxed({ requests: [['k', 'k', 'k']], rounds: 1, faults: 1 })
})

test('the explorer detects charges that are sent twice', async () => {
  const exploring = exploreRelaxed({ requests: [['k', 'k']], counted: 2, rounds: 1, sendsTwice: true })
  await expect(exploring).rejects.toThrow(/are admitted for k, 0 failed, and \d charged/)
})
