// Runs alone: it fakes timers.
import {
  type BanEvictedEvent,
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  type Limiter,
  type SluiceError,
  slidingLog,
  slidingWindow,
} from '@sluice/core'
import { KEPT_CHARGES } from '@sluice/core/store'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { memoryStore } from '../../../packages/core/src/features/memory-store.js'
import { BucketTable } from '../../../packages/core/src/memory/bucket-table.js'
import { ConcurrencyTable } from '../../../packages/core/src/memory/concurrency-table.js'
import { CounterTable } from '../../../packages/core/src/memory/counter-table.js'
import { KeyedValues } from '../../../packages/core/src/memory/keyed-values.js'
import { LogTable } from '../../../packages/core/src/memory/log-table.js'
import { SegmentsTable } from '../../../packages/core/src/memory/segments-table.js'

const NOON = 20_000 * 86_400_000 + 43_200_000
const HOUR = 3_600_000

/**
 * The bound of `SWEPT_PER_TICK`, and of the states that one decision looks at: 65 evictions, each among 8, and two
 * swept.
 */
const MOST_PER_TICK = 2000
const MOST_PER_DECISION = 65 * 8 + 8 + 2

let now = NOON
beforeEach(() => {
  now = NOON
  vi.useFakeTimers()
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** Counts the same identity as `byIp()`, without a request. */
const byAddress = Object.assign((address: string) => address, { kind: 'ip' })

const storeOf = (room: { maxKeys?: number; maxBytes?: number }) => memoryStore({ clock: () => now, ...room })

/** Requests of so many new identities. */
async function flood(
  limiter: Limiter<string>,
  identities: number,
  cost = 1,
  requests = 1,
  name = 'new',
): Promise<void> {
  for (let i = 0; i < identities; i++) {
    for (let n = 0; n < requests; n++) await limiter.consume(`${name}-${i}`, { cost })
  }
}

const ONE_PER_DAY: Record<string, Limit> = {
  'exact log': slidingLog({ limit: 1, window: '1d' }),
  'fixed window': fixedWindow({ limit: 1, window: '1d' }),
  'window from the first request': fixedWindow({ limit: 1, window: '1d', anchor: 'first-request' }),
  gcra: gcra({ limit: 1, window: '1d' }),
  'strict window': slidingWindow({ limit: 1, window: '1d', edge: 'strict' }),
  'weighted window': slidingWindow({ limit: 1, window: '1d' }),
}

describe('a refused identity in a full store', () => {
  for (const [name, limit] of Object.entries(ONE_PER_DAY)) {
    test(`a refused identity outlives ten times maxKeys admitted ones: ${name}`, async () => {
      for (let run = 0; run < 5; run++) {
        const limiter = createLimiter({ store: storeOf({ maxKeys: 40 }), limits: [limit] })
        await flood(limiter, run)
        await limiter.consume('victim')
        expect((await limiter.consume('victim')).allowed).toBe(false)
        await flood(limiter, 400, 1, 1, 'rotating')
        expect((await limiter.consume('victim')).allowed, `run ${run}`).toBe(false)
      }
    })
  }

  test('a refused identity outlives a flood through another limiter of the store', async () => {
    const store = storeOf({ maxKeys: 60 })
    const login = createLimiter({ name: 'login', store, limit: 1, window: '1d' })
    for (let i = 0; i < 80; i++) await login.consume(`victim-${i % 40}`)
    await flood(createLimiter({ name: 'search', store, limit: 1, window: '1d' }), 1000)
    for (let i = 0; i < 40; i++) expect((await login.peek(`victim-${i}`)).allowed, `victim-${i}`).toBe(false)
  })

  test('a refused identity outlives a flood on the limit that refused it, beside other limits', async () => {
    const limits = [fixedWindow({ limit: 1, window: '1d' }), gcra({ limit: 500, window: '1d' })]
    const limiter = createLimiter({ store: storeOf({ maxKeys: 60 }), limits })
    for (let n = 0; n < 2; n++) await limiter.consume('victim')
    await flood(limiter, 600)
    expect((await limiter.peek('victim')).limits.map(({ remaining }) => remaining)).toEqual([0, 500])
  })

  test('a refused identity outlives a flood where refusals are charged', async () => {
    const limiter = createLimiter({
      store: storeOf({ maxKeys: 60 }),
      onDeny: 'charge',
      limits: [slidingLog({ limit: 8, window: '1d' })],
    })
    for (const cost of [3, 6]) await limiter.consume('victim', { cost })
    await flood(limiter, 600, 8)
    expect((await limiter.peek('victim')).remaining).toBe(0)
  })

  test('a refused identity outlives a flood after its log has grown', async () => {
    const limiter = createLimiter({
      store: storeOf({ maxKeys: 60 }),
      limits: [slidingLog({ limit: 20, window: '1d' })],
    })
    const admitted = []
    for (const cost of [2, 19, 5, 11]) admitted.push((await limiter.consume('victim', { cost })).allowed)
    expect(admitted).toEqual([true, false, true, true])
    await flood(limiter, 600, 20)
    expect((await limiter.peek('victim')).remaining).toBe(2)
  })

  test('an identity is evicted like any other once its refusing state has ended', async () => {
    const limits = [fixedWindow({ limit: 2, window: '1h', anchor: 'first-request' })]
    const limiter = createLimiter({ store: storeOf({ maxKeys: 20 }), limits })
    for (let n = 0; n < 3; n++) await limiter.consume('once refused')
    now += 3 * HOUR
    await limiter.consume('once refused')
    expect((await limiter.peek('once refused')).remaining).toBe(1)
    await flood(limiter, 200, 2)
    expect((await limiter.peek('once refused')).remaining).toBe(2)
  })

  test('an identity is evicted like any other if only its cost was impossible', async () => {
    const limiter = createLimiter({ store: storeOf({ maxKeys: 20 }), limits: [gcra({ limit: 10, window: '1d' })] })
    await limiter.consume('large')
    expect((await limiter.consume('large', { cost: 11 })).allowed).toBe(false)
    await flood(limiter, 200, 2)
    expect((await limiter.peek('large')).remaining).toBe(10)
  })

  test('an identity refused more often outlives a crowd refused less often', async () => {
    const limiter = createLimiter({ store: storeOf({ maxKeys: 60 }), limit: 1, window: '1d' })
    for (let n = 0; n < 4; n++) await limiter.consume('victim')
    await flood(limiter, 600, 1, 3)
    expect((await limiter.peek('victim')).allowed).toBe(false)
  })

  test('new identities are limited however many refused ones a full store holds', async () => {
    for (const maxKeys of [1, 2, 5, 10, 80]) {
      const limiter = createLimiter({ store: storeOf({ maxKeys }), limit: 3, window: '1d' })
      await flood(limiter, 3 * maxKeys, 3, 2)
      const admitted = []
      for (let n = 0; n < 5; n++) admitted.push((await limiter.consume('newcomer')).allowed)
      expect(admitted, `${maxKeys}`).toEqual([true, true, true, false, false])
    }
  })
})

/** The number of so many new identities, one after the other, that a store still knows in the end. */
async function known(limiter: Limiter<string>, identities: number, keyOf: (i: number) => string, cost = 1) {
  for (let i = 0; i < identities; i++) await limiter.consume(keyOf(i), { cost })
  let count = 0
  for (let i = 0; i < identities; i++) {
    if ((await limiter.peek(keyOf(i))).resetAfterMs > 0) count++
  }
  return count
}

describe('maxBytes', () => {
  const limit = 2000
  const limits = [slidingLog({ limit, window: '1d' })]

  test('maxBytes bounds states by the length of their keys, by two-byte characters, and by the entries of logs', async () => {
    const count = (keyOf: (i: number) => string, cost = 1, identities = 3600) =>
      known(
        createLimiter({ store: storeOf({ maxBytes: 1_000_000, maxKeys: 1_000_000 }), limits }),
        identities,
        keyOf,
        cost,
      )
    const [latin, wide, short, logs] = [
      await count((i) => `${i}`.padStart(250, 'k')),
      await count((i) => `${i}`.padStart(250, 'ж')),
      await count((i) => `${i}`),
      await count((i) => `${i}`, 1000, 200),
    ]
    // 250 characters and about 60 bytes beside; twice 250 likewise; and 1,000 entries of 8 bytes with room for an
    // eighth more.
    expect(latin).toBeGreaterThan(2700)
    expect(latin).toBeLessThan(3400)
    expect(wide).toBeGreaterThan(1500)
    expect(wide).toBeLessThan(1900)
    expect(short).toBe(3600)
    expect(logs).toBeGreaterThan(50)
    expect(logs).toBeLessThan(125)
  })

  test('maxBytes holds when large states suddenly join a store full of small ones', async () => {
    const store = storeOf({ maxBytes: 2_000_000, maxKeys: 1_000_000 })
    const limiter = createLimiter({ store, limits: [slidingLog({ limit: 100_000, window: '1d' })] })
    await flood(limiter, 30_000, 1, 1, 'small')
    // 90,000 entries are at least 720,000 bytes.
    expect(await known(limiter, 40, (i) => `large-${i}`, 90_000)).toBeLessThanOrEqual(2)
  })

  test('a refused identity outlives a flood of admitted long keys under maxBytes', async () => {
    const store = storeOf({ maxBytes: 1_000_000, maxKeys: 1_000_000 })
    const limiter = createLimiter({ store, limit: 1, window: '1d' })
    for (let n = 0; n < 2; n++) await limiter.consume('victim')
    await flood(limiter, 6000, 1, 1, 'k'.repeat(200))
    expect((await limiter.peek('victim')).allowed).toBe(false)
  })

  test('blocks take at most half of maxBytes: one more is an error, none is lost, and limits continue', async () => {
    const store = storeOf({ maxBytes: 1_000_000 })
    const limiter = createLimiter({ store, limit: 2, window: '1d' })
    const nameOf = (i: number) => `${i}`.padStart(100, 'b')
    let blocks = 0
    let error: SluiceError | undefined
    while (!error && blocks < 10_000) {
      await limiter.block(nameOf(blocks), { for: '1h', reason: 'scraping' }).then(
        () => blocks++,
        (thrown) => {
          error = thrown
        },
      )
    }
    expect(error).toMatchObject({ name: 'SluiceError', code: 'STORE_FULL' })
    expect(error?.message).toContain(`${blocks} take half of 1000000 bytes`)
    // 500,000 bytes at 100 for the name and about 100 beside.
    expect(blocks).toBeGreaterThan(2000)
    expect(blocks).toBeLessThan(5000)
    for (let i = 0; i < blocks; i++) expect((await limiter.peek(nameOf(i))).reason, nameOf(i)).toBe('blocked')
    expect((await limiter.peek(nameOf(blocks))).allowed).toBe(true)

    // A known block can be prolonged. A block that is lifted makes room, and so do those that have ended.
    await limiter.block(nameOf(0), { for: '2h', reason: 'scraping' })
    await limiter.unblock(nameOf(1))
    await limiter.block(nameOf(blocks), { for: '1h', reason: 'scraping' })
    await expect(limiter.block(nameOf(1), { for: '1h', reason: 'scraping' })).rejects.toThrow('no room')
    expect(await known(limiter, 3000, (i) => `limited-${i}`)).toBe(3000)
    now += 2 * HOUR
    await limiter.block('one more', { for: '1h' })
    expect((await limiter.peek('one more')).reason).toBe('blocked')
  })

  test('maxBytes holds when blocks get longer reasons: they last as long as the new ones, and limits continue', async () => {
    const limiter = createLimiter({ store: storeOf({ maxBytes: 1_000_000 }), limit: 2, window: '1d' })
    let blocks = 0
    const blockAnother = () => limiter.block(`blocked-${blocks}`, { for: '1h', reason: 'short' })
    const isFull = () =>
      blockAnother().then(
        () => blocks++ < 0,
        () => true,
      )
    while (!(await isFull()));
    for (let i = 0; i < blocks; i++) await limiter.block(`blocked-${i}`, { for: '3h', reason: '長'.repeat(200) })

    const verdicts = [await limiter.consume('other'), await limiter.consume('other'), await limiter.consume('other')]
    expect(verdicts.map(({ allowed }) => allowed)).toEqual([true, true, false])
    now += 2 * HOUR
    for (let i = 0; i < blocks; i++) expect((await limiter.peek(`blocked-${i}`)).allowed).toBe(false)
    await limiter.unblock('blocked-0')
    await limiter.unblock('blocked-1')
    await limiter.block('blocked-2', { for: '3h', reason: 'a longer reason' })
    expect((await limiter.peek('blocked-2')).block?.reason).toBe('a longer reason')
  })

  test('bans without room evict the lowest rung that ends soonest, with a warning; blocks still fit', async () => {
    const store = storeOf({ maxBytes: 1_000_000 })
    const ban = { after: 1, within: '1h', for: ['1h', '1d'], by: 'ip', private: true } as const
    const limiter = createLimiter({
      name: 'site',
      store,
      limits: [gcra({ limit: 9, window: '1d', key: byAddress })],
      ban,
    })
    const warnings: string[] = []
    const evicted: BanEvictedEvent[] = []
    store.on('warning', ({ code }) => warnings.push(code))
    store.on('ban-evicted', (event) => evicted.push(event))
    const addressOf = (i: number) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`
    const reasonFor = async (ip: string) => (await limiter.peek(ip)).reason

    // Some are on the second rung; and those on the first end in reverse order.
    for (let i = 0; i < 50; i++) await limiter.strike({ ip: `192.0.2.${i}` })
    now += HOUR
    for (let i = 0; i < 50; i++) await limiter.strike({ ip: `192.0.2.${i}` })
    now += HOUR
    const begun = new Map<string, number>()
    for (let bans = 0; evicted.length < 1000; bans++) {
      now += bans < 2000 ? -10 : bans === 2000 ? 5 : 10
      begun.set(addressOf(bans), now)
      expect(await limiter.strike({ ip: addressOf(bans) }), `${bans}`).toMatchObject({ rung: 1 })
    }
    expect(warnings).toEqual(['SLUICE_BANS_EVICTED'])
    expect(evicted[0]).toEqual({
      policy: 'site',
      identity: { kind: 'ip', value: addressOf(1999) },
      rung: 1,
      remainingMs: expect.any(Number),
    })
    // In the order of their ends: evicted bans would have ended soonest.
    const evictedIps = new Set(evicted.map(({ identity }) => identity.value))
    const last = Math.max(...[...evictedIps].map((ip) => begun.get(String(ip)) as number))
    for (const [ip, since] of begun) expect(await reasonFor(ip), ip).toBe(since <= last ? undefined : 'banned')
    for (let i = 0; i < 50; i++) expect(await reasonFor(`192.0.2.${i}`)).toBe('banned')

    await limiter.block({ ip: '198.51.100.7' }, { for: '1h', reason: 'scraping' })
    await limiter.block({ ip: '203.0.113.0/24' }, { for: '1h' })
    expect(await reasonFor('198.51.100.7')).toBe('blocked')
    expect(await reasonFor('203.0.113.9')).toBe('blocked')
  })

  test('bans keep a part of maxBytes: in a store full of blocks a ban begins and holds', async () => {
    const store = storeOf({ maxBytes: 1_000_000 })
    const ban = { after: 1, within: '1h', for: ['1h'] } as const
    const limiter = createLimiter({ name: 'site', store, limit: 9, window: '1d', ban })
    for (let i = 0; i < 4000; i++) await limiter.strike(`banned-${i}`)
    let blocks = 0
    const isFull = () =>
      limiter.block(`blocked-${blocks}`, { for: '1h' }).then(
        () => blocks++ < 0,
        ({ code }: SluiceError) => code === 'STORE_FULL',
      )
    while (!(await isFull()));
    expect(blocks).toBeGreaterThan(3000)
    for (let i = 0; i < blocks; i++) expect((await limiter.peek(`blocked-${i}`)).reason).toBe('blocked')
    const isBanned = async (i: number) => (await limiter.peek(`banned-${i}`)).reason === 'banned'
    const banned = (await Promise.all(Array.from({ length: 4000 }, (_, i) => isBanned(i)))).filter(Boolean).length
    expect(banned).toBeGreaterThan(200)
    expect(await limiter.strike('one more')).toMatchObject({ rung: 1 })
    expect((await limiter.consume('one more')).reason).toBe('banned')
    // A ban takes the room of bans: a block in its place needs room for blocks.
    await expect(limiter.block('one more', { for: '2h' })).rejects.toMatchObject({ code: 'STORE_FULL' })
    expect((await limiter.consume('one more')).reason).toBe('banned')
    await limiter.unblock('blocked-0')
    await limiter.block('one more', { for: '2h' })
    expect((await limiter.consume('one more')).reason).toBe('blocked')
  })

  test('maxBytes must be a whole number of at least a million', () => {
    for (const maxBytes of [999_999, 1.5e6 + 0.5, Number.NaN, '256 MB' as never]) {
      expect(() => memoryStore({ maxBytes })).toThrow(
        'memoryStore: maxBytes: expected a whole number of at least 1000000',
      )
    }
  })
})

const TABLES = [BucketTable, ConcurrencyTable, CounterTable, LogTable, SegmentsTable]

/** Counts the states, tables and blocks that walks look at. */
function countVisits(): () => number {
  let visits = 0
  const count = (prototype: object, method: string) => {
    const original = Reflect.get(prototype, method) as (...args: unknown[]) => unknown
    vi.spyOn(prototype as Record<string, () => unknown>, method).mockImplementation(function (this: unknown, ...args) {
      visits++
      return original.apply(this, args as unknown[])
    })
  }
  // Each walk calls `end` once per state, and `at` for tables and blocks.
  for (const table of TABLES) count(table.prototype, 'end')
  count(KeyedValues.prototype, 'at')
  return () => {
    const since = visits
    visits = 0
    return since
  }
}

describe('bounded work', () => {
  test('a decision looks at a bounded number of states, however many states, tables or bytes have to go', async () => {
    const store = storeOf({ maxBytes: 1_000_000, maxKeys: 5000 })
    const make = (limit: number) =>
      createLimiter({ name: `of-${limit}`, store, limits: [slidingLog({ limit, window: '1d' })] })
    const visits = countVisits()
    let most = 0
    const consume = async (limiter: Limiter<string>, key: string, cost = 1) => {
      await limiter.consume(key, { cost })
      most = Math.max(most, visits())
    }
    const small = make(5)
    for (let i = 0; i < 7000; i++) await consume(small, `key-${i}`)
    for (let i = 0; i < 1000; i++) await consume(small, `key-${i}`, 5)
    const flooded = most
    // Two states of its own table are swept and eight compared; beside them, up to eight tables.
    expect(flooded).toBeLessThanOrEqual(2 + 8 + 8)
    for (let i = 0; i < 300; i++) await consume(make(i + 10), 'key')
    const large = make(50_000)
    for (let i = 0; i < 10; i++) await consume(large, `key-${i}`, 40_000)
    expect(most).toBeGreaterThan(flooded)
    expect(most).toBeLessThanOrEqual(MOST_PER_DECISION + 65 * 8)
  })

  test('each call of the timer does bounded work, and together they free all states, blocks and tables', async () => {
    const store = storeOf({ maxKeys: 1_000_000 })
    const limiter = createLimiter({ name: 'one', store, limits: [fixedWindow({ limit: 2, window: '1h' })] })
    const other = createLimiter({ name: 'other', store, limits: [gcra({ limit: 2, window: '1h' })] })
    for (let i = 0; i < 10_000; i++) {
      await limiter.consume(`key-${i}`, { cost: 2 })
      if (i % 3 === 0) await limiter.consume(`key-${i}`)
      await other.consume(`key-${i}`)
      await limiter.block(`blocked-${i}`, { for: '1h' })
    }
    const visits = countVisits()
    let ticks = 0
    const tick = () => {
      vi.advanceTimersToNextTimer()
      expect(visits()).toBeLessThanOrEqual(MOST_PER_TICK)
    }
    // Nothing has ended yet, so nothing is freed.
    for (; ticks < 30; ticks++) tick()
    expect((await limiter.peek('key-3')).allowed).toBe(false)
    expect((await limiter.peek('blocked-9999')).reason).toBe('blocked')
    now += 3 * HOUR
    visits()
    for (; vi.getTimerCount() > 0; ticks++) tick()
    expect(ticks).toBeGreaterThan(40)
    expect(ticks).toBeLessThan(80)
  })

  test('block, unblock, reset and close do bounded work', async () => {
    const store = storeOf({ maxKeys: 20_000 })
    const limiter = createLimiter({ store, limit: 1, window: '1h' })
    await flood(limiter, 20_000)
    const visits = countVisits()
    for (let i = 0; i < 5000; i++) await limiter.block(`key-${i}`, { for: 1 })
    now += 2 * HOUR
    visits()
    for (const call of [
      () => limiter.block('key', { for: '1h' }),
      () => limiter.unblock('key'),
      () => limiter.reset('key-1'),
      () => store.close(),
    ]) {
      await call()
      expect(visits()).toBeLessThanOrEqual(8)
    }
    expect((await limiter.peek('key-2')).remaining).toBe(1)
  })
})

test('limits that differ with every request leave no table behind if nothing was charged', async () => {
  const limiter = createLimiter<number>({ store: storeOf({}), limit: (limit) => limit, window: '1s', key: () => 'key' })
  for (let limit = 1; limit <= 50; limit++) await limiter.peek(limit)
  expect(vi.getTimerCount()).toBe(1)
  await vi.advanceTimersByTimeAsync(1000)
  expect(vi.getTimerCount()).toBe(0)
})

test('a store of the default size holds 80,000 ids of charges', async () => {
  const store = memoryStore()
  const limits = [fixedWindow<string>({ limit: 1_000_000, window: '1d' })]
  const limiter = createLimiter<string>({ name: 'jobs', store, limits, charges: { keep: '1h' } })
  const ids: string[] = []
  for (let n = 0; n < 80_000; n++) ids.push((await limiter.consume('client:192.0.2.1')).id as string)
  const partsOf = (id: string) => store[KEPT_CHARGES].find('jobs', id) as readonly unknown[] | undefined
  expect(ids.filter((id) => !partsOf(id)?.length)).toEqual([])
})
