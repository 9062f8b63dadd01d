// Runs alone: it takes over the timers of its process.
import { test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { type BansOptions, BansWorld } from './support/bans-world.js'
import { explore } from './support/explore.js'
import { redisOfWorlds } from './support/redis-of-worlds.js'

const redis = redisOfWorlds('setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance')

/** Looks at the index read 16 parts of it, which makes too many schedules to try all. */
const SAMPLE = byEffort({ usual: 25, full: 1500 })

const exploreBans = (options: BansOptions) => explore(() => BansWorld.make(redis(), options), 0, { sample: SAMPLE })

test('a ban that began holds without Redis, however late the index replies', async () => {
  await exploreBans({ refusals: 4 })
})

test('a ban that began holds without Redis, and a lifted one does not, while the process looks at the index', async () => {
  await exploreBans({ refusals: 4, unblocks: 1, looks: 3 })
})
