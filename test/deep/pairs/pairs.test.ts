// Release: runs clusters. Takes long: begins first.
import { memoryStore, redisStore } from '@sluice/core'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { clusterClients, singleClients } from '../../support/clients.js'
import { byEffort } from '../../support/effort.js'
import { insist } from '../../support/outages.js'
import { startCluster } from '../../support/redis-cluster.js'
import { redisForTests } from '../../support/redis-for-tests.js'
import type { Case, Way } from './case.js'
import { type Explored, explore } from './explore.js'
import { caseWith, FEATURES, type Feature, isOption, REJECTED, rejectionsOf } from './features.js'
import { productOf } from './product.js'
import { SERVERS } from './server.js'

/** A failure prints the seed of its case. */
const SEED = Number(process.env.SLUICE_SEED ?? byEffort({ usual: 1, full: Date.now() % 1e9 }))
/** Of the merge. The deep run tries so many times as many. */
const TIMES = Number(process.env.SLUICE_RUNS ?? byEffort({ usual: 1, full: 100 }))
/** The events with a pair of features, at least. */
const LEAST_MET = byEffort({ usual: 10, full: 1000 })

const { server: redis, client } = await redisForTests()
const others = [1, 2].map(() => singleClients['ioredis 6'](redis.port))
const cluster = await startCluster()
const ofCluster = clusterClients['ioredis 6 Cluster'](cluster)
afterAll(async () => {
  for (const other of others) other.close()
  ofCluster.close()
  await cluster.stop()
})
await ofCluster.ready

const optionsOf = ({ denyCache = false }: Case, clock: () => number) => ({ timeout: 5000, denyCache, clock })

const STORES = {
  memory: (clock: () => number) => memoryStore({ clock }),
  async Redis(clock: () => number, _process: number, of: Case) {
    await client.flushall()
    return insist(redisStore(client, optionsOf(of, clock)))
  },
  async 'three processes on Redis'(clock: () => number, process: number, of: Case) {
    if (process === 0) await client.flushall()
    return insist(redisStore(others[process - 1]?.client ?? client, optionsOf(of, clock)))
  },
  async 'a cluster'(clock: () => number, _process: number, of: Case) {
    await cluster.flush()
    return insist(redisStore(ofCluster.client, optionsOf(of, clock)))
  },
}

/** The events to try. Each on Redis is a round trip, and requests that wait for the outcome of others wait for a ms. */
const EVENTS: Record<keyof typeof STORES, Record<Way, number>> = {
  memory: { limiter: 10_000, rateLimit: 4500, document: 3000 },
  Redis: { limiter: 1200, rateLimit: 600, document: 600 },
  'three processes on Redis': { limiter: 1000, rateLimit: 500, document: 500 },
  'a cluster': { limiter: 600, rateLimit: 300, document: 300 },
}

const met = new Map<string, number>()

function note(explored: Explored): void {
  for (const [pair, times] of explored.met) met.set(pair, (met.get(pair) ?? 0) + times)
}

describe.each(Object.entries(STORES))('a client gets what an independent model says, on %s', (name, makeStore) => {
  const seed = SEED + Object.keys(STORES).indexOf(name) * 1_000_000
  const events = Object.entries(EVENTS[name as keyof typeof STORES]) as [Way, number][]

  test.each(events)('whatever features meet: %s', async (way, events) => {
    // The outages of these stores are before their counts: test/redis/relaxed/before-outages.
    const without = name === 'memory' ? undefined : (['consistency', 'outages'] as const)
    const processes = name.startsWith('three') ? 3 : name === 'memory' ? 0 : 1
    // Processes exchange relaxed counts when a case says so.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const passTime = name === 'memory' ? undefined : () => void vi.advanceTimersByTime(10)
    const terms = { ways: [way], processes, makeStore, seed, events: events * TIMES, without, passTime }
    const explored = await explore(terms).finally(() => vi.useRealTimers())
    console.log(`${name}, ${way}: ${explored.events} events, seeds from ${seed}`)
    note(explored)
  })
})

/** Express 4 hardly differs from 5. */
const IN_MERGE = SERVERS.filter((server) => server !== 'Express 4')
const OVER_HTTP = byEffort({ usual: IN_MERGE, full: SERVERS }).entries()

describe.each([...OVER_HTTP])('a client gets what an independent model says, over HTTP (%i: %s)', (s, server) => {
  test.each(['rateLimit', 'document'] as const)('however requests come and responses end: %s', async (way) => {
    const seed = SEED + (4 + s) * 1_000_000
    const explored = await explore({ ways: [way], server, makeStore: STORES.memory, seed, events: 400 * TIMES })
    console.log(`${server}, ${way}: ${explored.events} events, seeds from ${seed}`)
    note(explored)
  })
})

const PAIRS = FEATURES.flatMap((one, i) => FEATURES.slice(i + 1).map((other): [Feature, Feature] => [one, other]))

test('every two features have met, or are rejected', () => {
  const isRejected = ([one, other]: [Feature, Feature]) =>
    REJECTED.some(([a, b]) => (a === one && b === other) || (a === other && b === one))
  const neither = PAIRS.filter((pair) => !isRejected(pair) && (met.get(pair.join(', ')) ?? 0) < LEAST_MET)
  expect(neither.map((pair) => `${pair.join(' and ')}: ${met.get(pair.join(', ')) ?? 0} events`)).toEqual([])
})

test('the policies of two options are rejected when they are made, with the message of the table, or accepted', async () => {
  const wrong: string[] = []
  for (const pair of PAIRS.filter((pair) => pair.every(isOption))) {
    const of = caseWith(...pair)
    const expected = rejectionsOf(of)
    const store = memoryStore()
    const message = await productOf(of, store).then(
      (product) => product.close().then(() => undefined),
      ({ message }: Error) => message,
    )
    await store.close()
    const isRight = message === undefined ? expected.length === 0 : expected.some((each) => message.includes(each))
    if (!isRight) wrong.push(`${pair.join(' and ')}: ${message}, expected ${expected[0]}`)
  }
  expect(wrong).toEqual([])
})
