import { memoryStore, redisStore, type Store } from '@sluice/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RELEASE } from '../../support/inside.js'
import { type ConcurrencyOptions, ConcurrencyWorld, type Holder } from './support/concurrency-world.js'
import { ALL, type ExploreOptions, explore } from './support/explore.js'
import { redisOfWorlds } from './support/redis-of-worlds.js'

const once: Holder = { deeds: ['release'] }
const renewing: Holder = { deeds: ['renew', 'release'] }
/** Frees its permit twice, as when a response finishes and its connection closes. */
const twice: Holder = { deeds: ['release', 'release'] }
const thrice: Holder = { deeds: ['refund', 'release', 'refund'] }

const inMemory = (clock: () => number) => memoryStore({ clock })
const explorePermits = (options: ConcurrencyOptions, moreThan: number, more?: ExploreOptions) =>
  explore(() => new ConcurrencyWorld(options), moreThan, more)

describe('in memory', () => {
  test('memory admits one of three holders of one permit, whose ttl ends at any moment', async () => {
    const holders = [renewing, once, once]
    await explorePermits({ store: inMemory, limit: 1, holders, halves: 3 }, 1000)
  })

  test('memory counts two permits exactly when holders free them twice or three times', async () => {
    const holders = [twice, thrice, once]
    await explorePermits({ store: inMemory, limit: 2, holders, halves: 1 }, 1000)
  })

  test('memory counts permits exactly with holders of several, and holders that die', async () => {
    const holders: Holder[] = [{ permits: 2, deeds: ['renew', 'release'] }, twice]
    await explorePermits({ store: inMemory, limit: 2, holders, halves: 3, faults: 1 }, 1000)
  })
})

describe('on real Redis', () => {
  const redis = redisOfWorlds()
  let store: Store
  let clock = () => 0
  beforeAll(() => {
    store = redisStore(redis(), { clock: () => clock(), timeout: 5000 })
  })
  afterAll(() => store.close())
  /** One connection for all worlds, each with its own keys and clock. */
  const onRedis = (own: () => number): Store => {
    clock = own
    return { decide: store.decide.bind(store), close: async () => {} } as Partial<Store> as Store
  }

  test('Redis admits one of two holders of one permit, whose ttl ends at any moment', async () => {
    const holders = [renewing, twice]
    await explorePermits({ store: onRedis, limit: 1, holders, halves: 2 }, 100)
  })

  test('Redis counts permits exactly with a holder of two, and a holder that dies', async () => {
    const holders: Holder[] = [{ permits: 2, deeds: ['refund', 'release'] }, once]
    await explorePermits({ store: onRedis, limit: 2, holders, halves: 2, faults: 1 }, 100)
  })
})

test('the explorer detects a permit that is freed under the wrong id', async () => {
  const careless = (clock: () => number): Store => {
    const store = memoryStore({ clock })
    let last = ''
    return {
      decide: (ask) => {
        if (ask.op === RELEASE) return store.decide({ ...ask, permitId: last })
        last = ask.permitId || last
        return store.decide(ask)
      },
      close: () => store.close(),
    } as Partial<Store> as Store
  }
  const exploring = explorePermits({ store: careless, limit: 2, holders: [once, once], halves: 0 }, 0, ALL)
  await expect(exploring).rejects.toThrow(/permits are free/)
})
