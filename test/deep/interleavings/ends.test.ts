// Runs alone: it takes over the timers of its process.
import { test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { type EndsOptions, EndsWorld } from './support/ends-world.js'
import { explore } from './support/explore.js'
import { redisOfWorlds } from './support/redis-of-worlds.js'

const redis = redisOfWorlds('setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance')

/** Three processes look every second, which makes too many schedules to try all. */
const SAMPLE = byEffort({ usual: 4, full: 3000 })

const exploreEnds = (options: EndsOptions, sample = SAMPLE) =>
  explore(() => EndsWorld.make(redis(), options), 0, { sample })

test('an unblocked identity is refused for one look at most, through pauses and flushes', async () => {
  await exploreEnds({ deed: 'unblock', flushes: 2, seconds: 4 })
})

test('the end of a block survives the process that made it once another has read it', async () => {
  await exploreEnds({ deed: 'unblock', flushes: 2, seconds: 4, leaves: true })
})

test('blocks that removeAll ended refuse for one look at most', async () => {
  await exploreEnds({ deed: 'removeAll', flushes: 2, seconds: 4 })
})

test('ended blocks refuse for one look at most after Redis restarts with old data', async () => {
  await exploreEnds({ deed: 'unblock', flushes: 2, seconds: 4, crashes: true, leaves: true })
  await exploreEnds({ deed: 'removeAll', flushes: 2, seconds: 4, crashes: true })
})

test('a forgotten identity is refused for one look at most, and its name is in no key or value', async () => {
  await exploreEnds({ deed: 'forget', flushes: 2, seconds: 4, leaves: true })
  await exploreEnds({ deed: 'forget', flushes: 2, seconds: 4, crashes: true, leaves: true })
})
