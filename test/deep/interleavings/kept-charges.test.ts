import { memoryStore, redisStore, type Store } from '@sluice/core'
import { KEPT_CHARGES, type StoreRequest, type StoreResult } from '@sluice/core/store'
import { describe, expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { ALL, type ExploreOptions, explore } from './support/explore.js'
import { type KeptOptions, KeptWorld } from './support/kept-world.js'
import { redisOfWorlds } from './support/redis-of-worlds.js'

function exploreKept(options: KeptOptions, moreThan: number, more?: ExploreOptions): Promise<void> {
  return explore(() => KeptWorld.make(options), moreThan, more)
}

describe.each([1, 3])('a kept charge on %i slots', (slots) => {
  // Reads of three records in any order would multiply the schedules, and change nothing.
  const base = { slots, readsByNetwork: slots === 1 }
  const moreThan = (few: number, many: number) => (slots === 1 ? few : many)

  test('two processes take each part once, whatever each of them changes', async () => {
    await exploreKept({ ...base, processes: [[{ settle: 1 }], ['refund']] }, moreThan(5, 700))
    await exploreKept({ ...base, processes: [[{ settle: 9 }], [{ settle: 1 }]] }, moreThan(5, 700))
  })

  test('a lost reply and its retry take each part once', async () => {
    await exploreKept({ ...base, processes: [['refund'], [{ settle: 2 }]], faults: 1 }, moreThan(300, 2000))
  })

  test('a reset at any moment makes its part unknown', async () => {
    await exploreKept({ ...base, processes: [['refund'], [{ settle: 9 }]], resets: true }, moreThan(25, 2000))
  })

  test('an id that ends at any moment changes nothing more', async () => {
    await exploreKept({ ...base, processes: [['refund'], [{ settle: 9 }]], ends: true }, moreThan(20, 2000))
  })
})

test('two changes of two processes with a lost reply, a reset and the end of the id', async () => {
  const processes = [
    [{ settle: 1 }, 'refund'],
    ['refund', { settle: 9 }],
  ] as const
  await exploreKept({ slots: 1, processes, resets: true, ends: true, faults: 1 }, 1000)
})

describe('on real Redis', () => {
  const redis = redisOfWorlds()

  test.each([1, 3])(
    'a kept charge on %i slots is changed once, with lost replies, resets and its end',
    async (slots) => {
      const stores = new Map<number, { now: () => number; store: Store }>()
      const storeOf = (slot: number, clock: () => number): Store => {
        const known = stores.get(slot) ?? { now: clock, store: undefined as unknown as Store }
        known.now = clock
        known.store ??= redisStore(redis(), { clock: () => known.now(), prefix: `slot-${slot}:`, timeout: 5000 })
        stores.set(slot, known)
        const { store } = known
        return {
          decide: (request: StoreRequest) => store.decide(request),
          reset: (...args: Parameters<Store['reset']>) => store.reset(...args),
          [KEPT_CHARGES]: store[KEPT_CHARGES],
          close: async () => {},
        } as unknown as Store
      }
      await explore(
        async () => {
          await redis().flushall()
          return KeptWorld.make({
            slots,
            processes: [[{ settle: 1 }], ['refund']],
            resets: true,
            ends: true,
            faults: slots === 1 ? 1 : 0,
            storeOf,
          })
        },
        100,
        // Each of the many orders of three slots takes milliseconds.
        slots === 1 ? {} : { sample: byEffort({ usual: 30, full: 1000 }) },
      )
      for (const { store } of stores.values()) await store.close()
    },
  )
})

describe('the explorer detects mistakes', () => {
  const wrong = (decide: (store: Store, request: StoreRequest) => StoreResult | Promise<StoreResult>) => {
    const storeOf = (_: number, clock: () => number): Store => {
      const store = memoryStore({ clock })
      return {
        decide: (request: StoreRequest) => decide(store, request),
        reset: (...args: Parameters<Store['reset']>) => store.reset(...args),
        [KEPT_CHARGES]: store[KEPT_CHARGES],
        close: () => store.close(),
      } as unknown as Store
    }
    return exploreKept({ slots: 1, processes: [['refund'], ['refund']], faults: 1, storeOf }, 0, ALL)
  }

  test('the explorer detects a refund that takes no notice of the record', async () => {
    await expect(
      wrong(async (store, request) => {
        const result = await store.decide(request)
        if (result.outcome !== 'done before') return result
        const rest = { ...request, keep: undefined }
        await store.decide(rest)
        return result
      }),
    ).rejects.toThrow(/units to be used/)
  })
})
