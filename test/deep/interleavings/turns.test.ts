import { expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { explore } from './support/explore.js'
import { redisOfWorlds } from './support/redis-of-worlds.js'
import { type TurnsOptions, TurnsWorld } from './support/turns-world.js'

const redis = redisOfWorlds('setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance')

/** There are too many schedules to try them all: each waits and asks again, for as long as it takes. */
const SAMPLE = byEffort({ usual: 20, full: 3000 })

const exploreTurns = (options: TurnsOptions, sample = SAMPLE) =>
  explore(() => TurnsWorld.make(redis(), options), 0, { sample })

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
