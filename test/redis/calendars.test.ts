import { setTimeout as sleep } from 'node:timers/promises'
import { calendarMonth, fixedWindow, memoryStore, redisStore, type Store, type Verdict } from '@sluice/core'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { jumps } from '../contract/calendars.js'
import { createLimiter } from '../contract/create-limiter.js'
import { Clock, freshKey } from '../contract/store-under-test.js'
import { fieldsOf } from '../contract/traces.js'
import { byEffort } from '../support/effort.js'
import { withOtherTimeZones } from '../support/other-time-zones.js'
import { insist } from '../support/outages.js'
import { redisForTests } from '../support/redis-for-tests.js'
import { until } from '../support/until.js'

const RUNS = Number(process.env.SLUICE_RUNS ?? byEffort({ usual: 15, full: 800 }))
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const { server, client } = await redisForTests()
afterEach(() => {
  vi.restoreAllMocks()
})
const open = (options: object = {}) => insist(redisStore(client, { timeout: 5000, ...options }))

const zones = ['UTC', 'America/Sao_Paulo', 'America/St_Johns', 'Australia/Lord_Howe', 'Pacific/Apia', 'Asia/Pyongyang']
const calendars = fc
  .record({
    timeZone: fc.constantFrom(...zones),
    limit: fc.integer({ min: 0, max: 9 }),
    window: fc.constantFrom('day', 'week', 'month', 'year'),
    first: fc.integer({ min: 1, max: 31 }),
    kind: fc.constantFrom('plain', 'plain', 'charge', 'joint', 'spread'),
  } as const)
  .map((all) => ({ ...all, window: all.window as 'day' | 'week' | 'month' | 'year' }))
const step = fc.record({
  jump: fc.oneof({ weight: 6, arbitrary: jumps }, { weight: 2, arbitrary: fc.integer({ min: -HOUR_MS + 1, max: 0 }) }),
  // The instant that the last verdict promised, or the ms before it.
  promised: fc.constantFrom(undefined, undefined, 0, -1),
  what: fc.constantFrom('consume', 'consume', 'consume', 'peek', 'refund', 'settle', 'reset', 'together', 'other'),
  cost: fc.integer({ min: 0, max: 4 }),
  which: fc.nat(),
})

/** Instants around which zones do something unusual. */
const beginnings = [
  '2011-12-29T00:00Z',
  '2015-08-14T12:00Z',
  '2018-02-17T12:00Z',
  '2010-11-06T12:00Z',
  '2024-02-28T00:00Z',
]

test('memory and Redis agree at every step in every zone, also on charges that are changed later', async () => {
  const clock = new Clock()
  const stores = [memoryStore({ clock: clock.read }), open({ clock: clock.read, denyCache: false })]
  const input = fc.record({
    of: calendars,
    from: fc.constantFrom(...beginnings),
    steps: fc.array(step, { minLength: 10, maxLength: 50 }),
  })
  await fc.assert(
    fc.asyncProperty(input, async ({ of, from, steps }) => {
      const { timeZone, limit, window, first, kind } = of
      let day = first
      const name = freshKey()
      const limiters = stores.map((store) => {
        const startsOn = window === 'month' ? { startsOn: () => day } : {}
        const spread = kind === 'spread' ? { spread: '6h' as const } : {}
        const own = fixedWindow<string>({ limit, window, timeZone, unit: 'tokens', ...startsOn, ...spread })
        const beside = [fixedWindow<string>({ limit: 7, window: '1h', unit: 'tokens' }), calendarMonth<string>(30)]
        return createLimiter({
          name,
          store,
          limits: kind === 'joint' ? [own, ...beside] : [own],
          onDeny: kind === 'charge' ? 'charge' : 'none',
        })
      })
      let latest = Date.parse(from)
      clock.now = latest
      const charged: { key: string; verdicts: readonly Verdict[] }[] = []
      for (const { jump, promised, what, cost, which } of steps) {
        const last = charged.at(-1)?.verdicts[0]
        clock.now += promised === undefined || !last ? jump : last.resetAfterMs + promised
        // States in memory outlive their end by an hour, for clocks that step back, in however many steps.
        latest = Math.max(latest, clock.now)
        clock.now = Math.max(clock.now, latest - HOUR_MS + 1)
        if (which % 11 === 0) day = 1 + (which % 31)
        const pair = charged[which % Math.max(1, charged.length)]
        const key = what === 'other' ? 'bob' : 'ann'
        const costs: { cost: Record<string, number> } = {
          cost: kind === 'joint' ? { tokens: cost, requests: 1 } : { tokens: cost },
        }
        const results = await Promise.all(
          limiters.map(async (limiter, i): Promise<unknown> => {
            if (what === 'peek') return limiter.peek('ann', costs)
            if (what === 'reset') return limiter.reset('ann')
            if (what === 'together') return Promise.all([1, 2, 3].map(() => limiter.consume('ann', costs)))
            if (what === 'refund' && pair) return limiter.refund(pair.key, pair.verdicts[i] as Verdict)
            if (what === 'settle' && pair) return pair.verdicts[i]?.settle({ tokens: which % 12 })
            return limiter.consume(key, costs)
          }),
        )
        const verdicts = results.map((result) => [result].flat() as Verdict[])
        const shown = verdicts.map((all) => all.map((one) => (isVerdict(one) ? [fieldsOf(one), one.limits] : one)))
        expect(JSON.stringify(shown[1])).toBe(JSON.stringify(shown[0]))
        verdicts[0]?.forEach((one, n) => {
          if (isVerdict(one) && one.allowed && what !== 'peek')
            charged.push({ key, verdicts: [one, verdicts[1]?.[n] as Verdict] })
        })
      }
    }),
    { numRuns: RUNS },
  )
  for (const store of stores) await store.close()
})

function isVerdict(one: unknown): one is Verdict {
  return typeof one === 'object' && one !== null && 'allowed' in one
}

/** The start of the next day in UTC, by Redis's clock. */
async function nextDay(): Promise<number> {
  const [seconds] = (await client.time()) as [number, number]
  return (Math.floor((Number(seconds) * 1000) / DAY_MS) + 1) * DAY_MS
}

describe('by the clock of Redis', () => {
  const days = (store: Store, limit = 2) =>
    createLimiter<string>({ name: 'days', store, limits: [fixedWindow({ limit, window: 'day' })] })

  test('the count outlives its process, and its key expires with the period', async () => {
    const key = freshKey()
    const first = open()
    await days(first).consume(key)
    await first.close()
    const next = open()
    expect(await days(next).consume(key)).toMatchObject({ allowed: true, remaining: 0 })
    expect(await days(next).consume(key)).toMatchObject({ allowed: false })
    const [[name = '', leftMs = 0] = []] = [...(await server.lifetimes())].filter(([each]) => each.includes(key))
    expect(name).toMatch(/}:days:day\.2$/)
    const [seconds] = (await client.time()) as [number, number]
    expect(Math.abs(Number(seconds) * 1000 + leftMs - (await nextDay()))).toBeLessThan(5000)
    await next.close()
  })

  test.each([-DAY_MS, DAY_MS, 2 * DAY_MS - HOUR_MS, -2 * DAY_MS + HOUR_MS])(
    'a process whose clock is %d ms apart ends the same period',
    async (apartMs) => {
      const store = open({ denyCache: false })
      const { now } = Date
      vi.spyOn(Date, 'now').mockImplementation(() => now() + apartMs)
      const limiter = days(store)
      const key = freshKey()
      await limiter.consume(key, { cost: 2 })
      const { retryAfterMs = 0 } = await limiter.consume(key)
      const [seconds, micros] = (await client.time()) as [number, number]
      const at = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
      expect(Math.abs(at + retryAfterMs - (await nextDay()))).toBeLessThan(5000)
      await store.close()
    },
  )

  test('a process whose clock is weeks apart is limited all the same', async () => {
    const store = open({ denyCache: false })
    const { now } = Date
    const limiter = days(store)
    for (const apartMs of [-40 * DAY_MS, 40 * DAY_MS]) {
      vi.spyOn(Date, 'now').mockImplementation(() => now() + apartMs)
      const key = freshKey()
      await limiter.consume(key, { cost: 2 })
      const { allowed, retryAfterMs = 0 } = await limiter.consume(key)
      expect(allowed).toBe(false)
      expect(retryAfterMs).toBeLessThanOrEqual(2 * DAY_MS)
      vi.restoreAllMocks()
    }
    await store.close()
  })

  test('processes with other time zone data end the period that the first of them has opened', async () => {
    const stores = [open(), open()]
    const limiters = [days(stores[0] as Store), days(withOtherTimeZones(stores[1] as Store, -HOUR_MS))]
    const key = freshKey()
    const ends = []
    for (const limiter of limiters) ends.push((await limiter.consume(key)).resetAfterMs)
    expect(Math.abs((ends[0] as number) - (ends[1] as number))).toBeLessThan(5000)
    for (const store of stores) await store.close()
  })

  test('a lease is spent within its period', async () => {
    const store = open()
    const limits = [fixedWindow<string>({ limit: 50, window: 'day', lease: { size: 8, ttl: '1s' } })]
    const limiter = createLimiter<string>({ name: 'leased', store, limits })
    const key = freshKey()
    let admitted = 0
    for (let n = 0; n < 80; n++) if ((await limiter.consume(key)).allowed) admitted++
    expect(admitted).toBe(50)
    await store.close()
  })

  test('requests wait for their turn across processes', async () => {
    const stores = [open(), open()]
    const [mine, theirs] = stores.map((store) =>
      createLimiter<string>({
        name: 'turns',
        store,
        sharedTurns: true,
        limits: [fixedWindow({ limit: 1, window: 'day' })],
      }),
    ) as [ReturnType<typeof days>, ReturnType<typeof days>]
    const key = freshKey()
    const first = await mine.consume(key)
    const wait = new AbortController()
    const waiting = theirs.acquire(key, { signal: wait.signal }).catch((error: Error) => error.name)
    await until('it waits', async () => (await client.keys(`*${key}*:waiting`)).length === 1)
    // A process that has just looked for waiters looks again after 50 ms.
    await sleep(60)
    await mine.refund(key, first)
    expect(await mine.consume(key)).toMatchObject({ allowed: false, remaining: 1 })
    wait.abort()
    expect(await waiting).toBe('AbortError')
    await until('a later one is admitted', async () => (await mine.consume(key)).allowed)
    for (const store of stores) await store.close()
  })
})
