import {
  concurrency,
  fixedWindow,
  gcra,
  type KeyFunction,
  keyed,
  type Limit,
  redisStore,
  type Store,
  slidingLog,
  slidingWindow,
} from '@sluice/core'
import { BANS } from '@sluice/core/store'
import { describe, expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { CONSUME, decideAcrossSlots, PEEK, REFUND } from '../../support/inside.js'
import { ALL, type ExploreOptions, explore } from './support/explore.js'
import { redisOfWorlds } from './support/redis-of-worlds.js'
import { type Request, type SlotsOptions, SlotsWorld } from './support/slots-world.js'

const WINDOW_MS = 1000
/** The time after which no charge is left, even in segments and permits. */
const passMs = 2 * WINDOW_MS

type Make = (limit: number, key: KeyFunction<Request>) => Limit<Request>

const algorithms: Readonly<Record<string, Make>> = {
  slidingLog: (limit, key) => slidingLog({ limit, window: WINDOW_MS, key }),
  gcra: (limit, key) => gcra({ limit, window: WINDOW_MS, key }),
  fixedWindow: (limit, key) => fixedWindow({ limit, window: WINDOW_MS, anchor: 'first-request', key }),
  slidingWindow: (limit, key) => slidingWindow({ limit, window: WINDOW_MS, segments: 2, edge: 'strict', key }),
  concurrency: (limit, key) => concurrency({ limit, ttl: WINDOW_MS, key }),
}
/** A test before a merge tries a count and permits; the others differ only in their arithmetic. */
const tried = Object.entries(algorithms).filter(([name]) =>
  byEffort({ usual: ['slidingLog', 'concurrency'].includes(name), full: true }),
)
const { slidingLog: log, concurrency: permits } = algorithms as Record<'slidingLog' | 'concurrency', Make>

const byUser = keyed('user-name', ({ user }: Request) => user)
const byAll = (slot: number) => keyed<Request>(`all-${slot}`, () => `all ${slot}`)

const ann: Request = { user: 'ann' }
const bob: Request = { user: 'bob' }

/** A store that its owner closes. */
function storeMethods(store: Store): Omit<Store, 'close'> {
  return {
    decide: (ask) => store.decide(ask),
    reset: (plan, identities) => store.reset(plan, identities),
    [BANS]: store[BANS],
  }
}

/** Explores a world with a limit by user and limits for all, each on its own slot. */
function exploreSlots(
  make: Make | readonly Make[],
  options: Omit<SlotsOptions, 'limits'>,
  moreThan: number,
  more?: ExploreOptions,
) {
  const limits = options.capacities.map((capacity, slot) => {
    const maker = typeof make === 'function' ? make : (make[slot] as Make)
    return maker(capacity, slot === 0 ? byUser : byAll(slot))
  })
  return explore(() => new SlotsWorld({ ...options, limits }), moreThan, more)
}

describe.each(tried)('%s on each of two slots', (_, make) => {
  test('a fault of one call across slots admits nothing beyond the limit, and leaves only lost charges', async () => {
    await exploreSlots(make, { capacities: [1, 1], requests: [ann, bob], faults: 1 }, 1000)
  })

  test('an admission across slots is refunded once, at any moment before or after time restores its units', async () => {
    const requests: Request[] = [{ ...ann, after: 'refund' }, ann]
    await exploreSlots(make, { capacities: [1, 1], requests, passMs }, 900)
  })

  test('charged refusals are charged on every slot, and hold no permits', async () => {
    await exploreSlots(
      make,
      {
        capacities: [2, 1],
        requests: [ann, bob],
        onDeny: 'charge',
        faults: 1,
      },
      2000,
    )
  })
})

describe('decisions across slots', () => {
  test('decisions across slots are exact for three requests', async () => {
    await exploreSlots(log, { capacities: [2, 1], requests: [ann, ann, bob] }, 3000)
  })

  test('decisions across three slots are exact', async () => {
    await exploreSlots(log, { capacities: [1, 1, 1], requests: [ann, bob] }, 3000)
  })

  test('decisions across slots are exact through two faults', async () => {
    await exploreSlots(log, { capacities: [1, 1], requests: [ann, bob], faults: 2 }, 20_000)
  })

  test('decisions across slots are exact with late replies in any order', async () => {
    await exploreSlots(
      log,
      {
        capacities: [1, 1],
        requests: [ann, bob],
        lateReplies: true,
        faults: 1,
      },
      100_000,
    )
  })

  test('decisions across slots are exact with costs that leave a part of a limit', async () => {
    const requests = [{ ...ann, cost: 2 }, ann, { ...bob, cost: 3 }]
    await exploreSlots(log, { capacities: [3, 3], requests }, 1000)
  })

  test('a blocked user is charged on no slot, whenever the block comes', async () => {
    for (const onDeny of ['none', 'charge'] as const) {
      await exploreSlots(
        log,
        {
          capacities: [2, 1],
          requests: [ann, bob],
          blocks: true,
          onDeny,
          faults: onDeny === 'none' ? 1 : 0,
        },
        500,
      )
    }
  })

  test('a release across slots frees the permit, and leaves the count on the other slot', async () => {
    const requests: Request[] = [{ ...ann, after: 'release' }, bob]
    await exploreSlots([log, permits], { capacities: [2, 1], requests, faults: 1 }, 5000)
  })
})

describe('on real Redis', () => {
  const redis = redisOfWorlds()

  test.each(tried)('decisions across slots on real Redis are exact with a refund: %s', async (_, make) => {
    const stores = new Map<number, { now: () => number; store: Store }>()
    const storeOf = (slot: number, clock: () => number): Store => {
      const known = stores.get(slot)
      if (known) known.now = clock
      else {
        const made = { now: clock, store: undefined as unknown as Store }
        made.store = redisStore(redis(), { clock: () => made.now(), prefix: `slot-${slot}:`, timeout: 5000 })
        stores.set(slot, made)
      }
      const { store } = stores.get(slot) as { store: Store }
      return { ...storeMethods(store), close: async () => {} }
    }
    const limits = [make(1, byUser), make(1, byAll(1))]
    const requests: Request[] = [{ ...ann, after: 'refund' }, bob]
    await explore(async () => {
      await redis().flushall()
      return new SlotsWorld({ limits, capacities: [1, 1], requests, storeOf })
    }, 100)
    for (const { store } of stores.values()) await store.close()
  })
})

describe('the explorer detects mistakes across slots', () => {
  const two = { capacities: [1, 1], requests: [ann, bob] }

  test('the explorer detects a missing refund', async () => {
    const decide: typeof decideAcrossSlots = (ask, slots, decide) =>
      decideAcrossSlots(ask, slots, (part, slot) =>
        part.op === REFUND && part.charge ? Promise.resolve(part.charge) : decide(part, slot),
      )
    await expect(exploreSlots(log, { ...two, decide }, 0, ALL)).rejects.toThrow(/is charged: expected 1 to be \+?0/)
  })

  test('the explorer detects a decision that peeks first and charges later', async () => {
    const decide: typeof decideAcrossSlots = async (ask, slots, decide) => {
      const seen = await decideAcrossSlots({ ...ask, op: PEEK }, slots, decide)
      if (!seen.allowed || ask.op !== CONSUME) return seen
      return { ...(await decideAcrossSlots(ask, slots, decide)), allowed: true }
    }
    await expect(exploreSlots(log, { ...two, decide }, 0, ALL)).rejects.toThrow(/admitted 2 units .* may admit 1/)
  })

  test('the explorer detects a charge that is sent again without its reply', async () => {
    const decide: typeof decideAcrossSlots = (ask, slots, decide) =>
      decideAcrossSlots(ask, slots, (part, slot) =>
        decide(part, slot).catch((error) => (part.op === CONSUME ? decide({ ...part }, slot) : Promise.reject(error))),
      )
    await expect(exploreSlots(log, { ...two, decide, faults: 1 }, 0, ALL)).rejects.toThrow()
  })

  test('the explorer detects a refusal that is lost when its refund fails', async () => {
    const decide: typeof decideAcrossSlots = async (ask, slots, decide) => {
      const lost: unknown[] = []
      const answer = await decideAcrossSlots(ask, slots, (part, slot) =>
        decide(part, slot).catch((error) => {
          lost.push(error)
          throw error
        }),
      )
      if (lost.length > 0) throw lost[0]
      return answer
    }
    await expect(exploreSlots(log, { ...two, decide, faults: 1 }, 0, ALL)).rejects.toThrow(
      /failed.*though all slots decided/,
    )
  })

  test('the explorer names the schedule of a failure, and repeats it', async () => {
    const decide: typeof decideAcrossSlots = async (ask, slots, decide) => ({
      ...(await decideAcrossSlots(ask, slots, decide)),
      allowed: true,
    })
    const error = await exploreSlots(log, { ...two, decide }, 0, ALL).catch((error: Error) => error)
    const schedule = /SLUICE_SCHEDULE=(\S+)/.exec(String(error))?.[1]
    const limits = [log(1, byUser), log(1, byAll(1))]
    const again = explore(() => new SlotsWorld({ ...two, limits, decide }), 0, { schedule })
    await expect(again).rejects.toThrow((error as Error).message)
    await expect(explore(() => new SlotsWorld({ ...two, limits }), 0, { schedule })).resolves.toBeUndefined()
  })
})
