import { memoryStore, redisStore } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { insist } from '../../support/outages.js'
import { redisForTests } from '../../support/redis-for-tests.js'
import type { Way } from './case.js'
import { explore } from './explore.js'

/** A failure prints the seed of its case. */
const SEED = Number(process.env.SLUICE_SEED ?? byEffort({ usual: 1, full: Date.now() % 1e9 }))
/** Of the merge. The deep run tries so many times as many. */
const TIMES = Number(process.env.SLUICE_RUNS ?? byEffort({ usual: 1, full: 100 }))

const { client } = await redisForTests()

const STORES = {
  memory: (clock: () => number) => memoryStore({ clock }),
  async Redis(clock: () => number) {
    await client.flushall()
    // A refusal from the deny cache reports other limits as they were, up to a second earlier.
    return insist(redisStore(client, { clock, timeout: 5000, denyCache: false }))
  },
}

/** The events to try. Each on Redis is a round trip, and requests that wait for the outcome of others wait for a ms. */
const EVENTS: Record<keyof typeof STORES, Record<Way, number>> = {
  memory: { limiter: 20_000, rateLimit: 5000, document: 3000 },
  Redis: { limiter: 1500, rateLimit: 800, document: 800 },
}

describe.each(Object.entries(STORES))('a client gets what an independent model says, on %s', (name, makeStore) => {
  const events = Object.entries(EVENTS[name as keyof typeof STORES]) as [Way, number][]

  test.each(events)('whatever features meet: %s', async (way, events) => {
    const explored = await explore({ ways: [way], makeStore, seed: SEED, events: events * TIMES })
    console.log(`${name}, ${way}: ${explored.events} events in ${explored.cases.length} cases, seeds from ${SEED}`)
    expect([...explored.rejected.keys()]).toEqual([])
  })
})
