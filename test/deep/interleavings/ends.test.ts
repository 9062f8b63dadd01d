import { test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { type EndsOptions, EndsWorld } from './support/ends-world.js'
import { explore } from './support/explore.js'
import { redisOfWorlds } from './support/redis-of-worlds.js'

const redis = redisOfWorlds('setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance')

/** There are too many schedules to try them all: three processes look every second. */
const SAMPLE = byEffort({ quick: 20, usual: 50, full: 3000 })

const exploreEnds = (options: EndsOptions, sample = SAMPLE) =>
  explore(() => EndsWorld.make(redis(), options), 0, { sample })

test('an unblocked identity is refused for one look at most, whatever is stopped and flushed', async () => {
  await exploreEnds({ deed: 'unblock', flushes: 2, seconds: 4 })
})

test('an end that one process has read from another outlives that', async () => {
  await exploreEnds({ deed: 'unblock', flushes: 2, seconds: 4, leaves: true })
})

test('what removeAll has ended is refused for one look at most', async () => {
  await exploreEnds({ deed: 'removeAll', flushes: 2, seconds: 4 })
})

test('the same where Redis comes back as it was before', async () => {
  await exploreEnds({ deed: 'unblock', flushes: 2, seconds: 4, crashes: true, leaves: true })
  await exploreEnds({ deed: 'removeAll', flushes: 2, seconds: 4, crashes: true })
})

test('an identity that was forgotten is refused for one look at most, and its name is nowhere', async () => {
  await exploreEnds({ deed: 'forget', flushes: 2, seconds: 4, leaves: true })
  await exploreEnds({ deed: 'forget', flushes: 2, seconds: 4, crashes: true, leaves: true })
})
