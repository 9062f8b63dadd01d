// Runs alone: it takes over the timers of its process.
import { expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { explore } from './support/explore.js'
import { redisOfWorlds } from './support/redis-of-worlds.js'
import { type TurnsOptions, TurnsWorld } from './support/turns-world.js'

const redis = redisOfWorlds('setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance')

/** Every waiter repeats its request until it is served, which makes too many schedules to try all. */
const SAMPLE = byEffort({ usual: 10, full: 3000 })

const exploreTurns = (options: TurnsOptions, sample = SAMPLE) =>
  explore(() => TurnsWorld.make(redis(), options), 0, { sample })

test('the higher priority of two waiters in two processes is served first once it is reported', async () => {
  await exploreTurns({
    waiters: [
      { process: 0, priority: 0 },
      { process: 1, priority: 1 },
    ],
    slow: 2,
  })
})

test('waiters of two classes in two processes are served in order, and before one that does not wait', async () => {
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

test('waiters that leave hold up no others, and their reports end', async () => {
  await exploreTurns({
    waiters: [
      { process: 0, priority: 1, leaves: true },
      { process: 1, priority: 0 },
      { process: 1, priority: 2, leaves: true },
    ],
    slow: 2,
  })
})

test('a process that dies holds up others only until its reports lapse', async () => {
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

test('the explorer detects decisions that ignore waiters', async () => {
  const waiters = [
    { process: 0, priority: 0 },
    { process: 1, priority: 1 },
  ] as const
  await expect(exploreTurns({ waiters, beside: 2, ignoresWaiters: true }, 200)).rejects.toThrow(/before/)
})

test('every waiter is served or fails, one at a time, whatever command or reply is lost', async () => {
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
