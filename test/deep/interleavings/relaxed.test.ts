import { expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { explore } from './support/explore.js'
import { redisOfWorlds } from './support/redis-of-worlds.js'
import { type RelaxedOptions, RelaxedWorld } from './support/relaxed-world.js'

const redis = redisOfWorlds('setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance')

/** There are too many schedules to try them all: each decision and exchange is a command of its own. */
const SAMPLE = byEffort({ quick: 20, usual: 50, full: 3000 })

const exploreRelaxed = (options: RelaxedOptions, sample = SAMPLE) =>
  explore(() => RelaxedWorld.make(redis(), options), 0, { sample })

test('one process decides as Redis would, from the first decision on a key, in the order in which it is asked', async () => {
  await exploreRelaxed({ asks: [['k', 'k', 'k', 'k']], limit: 3, rounds: 1 })
})

test('two processes admit no more than the limit each, and every unit is charged once', async () => {
  await exploreRelaxed({
    asks: [
      ['k', 'k'],
      ['k', 'k'],
    ],
    limit: 4,
    counted: 2,
    rounds: 1,
  })
})

test('a decision that is asked of Redis finds what was counted before it', async () => {
  await exploreRelaxed({ asks: [['k', 'k', 'other', 'k', 'other']], shared: 6, counted: 2, rounds: 1 })
  await exploreRelaxed({ asks: [['k', 'k', 'k']], deeds: ['unblock'], counted: 2, rounds: 1 })
})

test('a refund counts, whether its charge was sent before or not', async () => {
  await exploreRelaxed({ asks: [['k', 'k']], counted: 2, deeds: ['refund'], rounds: 2 })
})

test('a reset leaves nothing that was counted before it to be sent', async () => {
  await exploreRelaxed({ asks: [['k', 'k', 'k']], counted: 2, deeds: ['reset'], rounds: 2 })
})

test('a block holds in the process that blocks, and what was counted before it is charged', async () => {
  await exploreRelaxed({ asks: [['k', 'k', 'k']], counted: 2, deeds: ['block', 'unblock'], rounds: 1 })
})

test('what is lost is charged at most once', async () => {
  await exploreRelaxed({ asks: [['k', 'k', 'k']], counted: 2, rounds: 2, faults: 1 })
  await exploreRelaxed({ asks: [['k', 'k', 'k']], rounds: 1, faults: 1 })
})

test('the explorer notices charges that are sent twice', async () => {
  const exploring = exploreRelaxed({ asks: [['k', 'k']], counted: 2, rounds: 1, sendsTwice: true })
  await expect(exploring).rejects.toThrow(/are admitted for k, 0 failed, and \d charged/)
})
