import {
  fixedWindow,
  gcra,
  type Limit,
  memoryStore,
  redisStore,
  type Store,
  slidingLog,
  slidingWindow,
} from '@sluice/core'
import type { StoreRequest } from '@sluice/core/store'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CHARGE, DEBIT } from '../../support/inside.js'
import { ALL, type ExploreOptions, explore } from './support/explore.js'
import { redisOfWorlds } from './support/redis-of-worlds.js'
import { type SettleOptions, SettleWorld, type Spender } from './support/settle-world.js'

const CAPACITY = 10
const window = 1000
const LIMITS: Record<string, Limit<string>> = {
  fixedWindow: fixedWindow({ unit: 'tokens', limit: CAPACITY, window }),
  slidingWindow: slidingWindow({ unit: 'tokens', limit: CAPACITY, window, segments: 2, edge: 'strict' }),
  slidingLog: slidingLog({ unit: 'tokens', limit: CAPACITY, window }),
  gcra: gcra({ unit: 'tokens', limit: CAPACITY, window }),
}
/** The time after which no charge is left, whatever its debt. */
const passMs = 4 * window

const above: Spender = { tokens: 3, deeds: [{ settle: 5 }] }
const below: Spender = { tokens: 4, deeds: [{ settle: 1 }] }
/** Beyond the limit, whatever the others do. */
const debt: Spender = { tokens: 2, deeds: [{ settle: 14 }] }
const both: Spender = { tokens: 3, deeds: [{ settle: 6 }, 'refund'] }
const metered: Spender = { tokens: 2, deeds: [{ add: 3 }, { add: 2 }, 'end'] }
const meterSettled: Spender = { tokens: 2, deeds: [{ add: 4 }, { settle: 3 }, 'end', 'refund'] }
const meterRefunded: Spender = { tokens: 1, deeds: [{ add: 5 }, 'refund', { settle: 9 }] }

type Given = Omit<SettleOptions, 'limit' | 'capacity' | 'countsDebts' | 'store'>

describe.each(Object.entries(LIMITS))('%s', (name, limit) => {
  // A log holds no more than its limit.
  const base = { limit, capacity: CAPACITY, countsDebts: name !== 'slidingLog' }
  const inMemory = (clock: () => number) => memoryStore({ clock })
  const exploreInMemory = (given: Given, moreThan: number, more?: ExploreOptions) =>
    explore(() => new SettleWorld({ ...base, ...given, store: inMemory }), moreThan, more)

  test('settling above and below is exact in every order', async () => {
    await exploreInMemory({ spenders: [above, below, both, below] }, 800)
  })

  test('a debt locks out until it lapses, and a refund after that returns nothing', async () => {
    await exploreInMemory({ spenders: [debt, below, both], passMs }, 500)
  })

  test('steps of meters, settlements and refunds count once, in every order', async () => {
    await exploreInMemory({ spenders: [metered, meterSettled, meterRefunded] }, 2900)
  })

  test('a call that fails charges or refunds once at most', async () => {
    await exploreInMemory({ spenders: [above, both, meterSettled], faults: 1 }, 4400)
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

  test.each(Object.entries(LIMITS))('%s: debts, refunds and steps are exact in every order', async (name, limit) => {
    const base = { store: onRedis, limit, capacity: CAPACITY, countsDebts: name !== 'slidingLog' }
    await explore(() => new SettleWorld({ ...base, spenders: [debt, meterSettled, below], passMs }), 1400)
  })
})

test('the explorer detects a debt that is charged as far as there is room, and one that is charged twice', async () => {
  const limit = LIMITS.fixedWindow as Limit<string>
  const wrong = (
    spenders: readonly Spender[],
    decide: (store: Store, request: StoreRequest) => ReturnType<Store['decide']>,
  ) =>
    explore(
      () =>
        new SettleWorld({
          limit,
          capacity: CAPACITY,
          countsDebts: true,
          spenders,
          store: (clock) => {
            const store = memoryStore({ clock })
            return { decide: (request: StoreRequest) => decide(store, request), close: () => store.close() } as Store
          },
        }),
      0,
      ALL,
    )
  await expect(
    wrong([debt, below], (store, request) => store.decide(request.op === DEBIT ? { ...request, op: CHARGE } : request)),
  ).rejects.toThrow(/tokens are left|admitted/)
  await expect(
    wrong([above, below], (store, request) => {
      if (request.op === DEBIT) store.decide(request)
      return store.decide(request)
    }),
  ).rejects.toThrow(/tokens are left|admitted/)
})
