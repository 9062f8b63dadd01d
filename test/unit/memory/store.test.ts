// Runs alone: it measures memory, and changes flags of V8.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  createLimiter,
  fixedWindow,
  gcra,
  keyed,
  memoryStore,
  perDay,
  perHour,
  perMinute,
  perSecond,
  type Store,
  slidingLog,
  slidingWindow,
} from '@sluice/core'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { randomFrom } from '../../contract/policies.js'
import { byEffort } from '../../support/effort.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/**
 * Bytes of the buffers that hold states. Exact, unlike the heap; `test/deep/chaos/memory.test.ts` counts the keys
 * there.
 */
function bytesOfStates(): number {
  // Twice: what the first finds is counted as freed when the second begins.
  collectGarbage()
  collectGarbage()
  return process.memoryUsage().arrayBuffers
}

const NOON = 20_000 * 86_400_000 + 43_200_000
const DAY = 86_400_000

afterEach(() => void vi.useRealTimers())

describe('a full memory store', () => {
  test('a full memory store keeps maxKeys states and forgets the rest', async () => {
    const limiter = createLimiter({ store: memoryStore({ clock: () => NOON, maxKeys: 100 }), limit: 1, window: '1d' })
    for (let i = 0; i < 250; i++) await limiter.consume(`key-${i}`)
    let known = 0
    for (let i = 0; i < 250; i++) if (!(await limiter.peek(`key-${i}`)).allowed) known++
    expect(known).toBe(100)
  })

  for (const [name, limit] of Object.entries({
    'exact log': slidingLog({ limit: 5, window: '1h' }),
    'fixed window': fixedWindow({ limit: 5, window: '1d' }),
    'window from the first request': fixedWindow({ limit: 5, window: '1h', anchor: 'first-request' }),
    gcra: gcra({ limit: 5, window: '1h' }),
  })) {
    test(`a flood of new identities does not evict an identity limited by a ${name}`, async () => {
      const maxKeys = 50
      const limiter = createLimiter({ store: memoryStore({ clock: () => NOON, maxKeys }), limits: [limit] })
      expect((await limiter.consume('victim', { cost: 5 })).allowed).toBe(true)
      for (let round = 0; round < 20; round++) {
        for (let i = 0; i <= maxKeys; i++) await limiter.consume(`rotating-${round}-${i}`)
        expect((await limiter.consume('victim')).allowed, `round ${round}`).toBe(false)
      }
    })
  }

  test('a full memory store still counts for a limiter that comes later', async () => {
    const store = memoryStore({ clock: () => NOON, maxKeys: 20 })
    const crowd = createLimiter({ name: 'crowd', store, limit: 5, window: '1h' })
    const late = createLimiter({ name: 'late', store, limit: 3, window: '1h' })
    for (let i = 0; i < 30; i++) await crowd.consume(`key-${i}`)
    const verdicts = []
    for (let i = 0; i < 10; i++) verdicts.push((await late.consume('one')).allowed)
    expect(verdicts.filter(Boolean)).toHaveLength(3)
  })

  test('a full memory store still counts on every limit of a policy', async () => {
    const store = memoryStore({ clock: () => NOON, maxKeys: 20 })
    const limits = [gcra({ limit: 50, window: '1h' }), fixedWindow({ limit: 3, window: '1d' })]
    const limiter = createLimiter({ store, limits })
    for (let i = 0; i < 40; i++) await limiter.consume(`key-${i}`)
    const verdicts = []
    for (let i = 0; i < 10; i++) verdicts.push((await limiter.consume('one')).allowed)
    expect(verdicts.filter(Boolean)).toHaveLength(3)
  })
})

describe('expired states', () => {
  test('expired states are freed without traffic, by one timer that ends with the last state', async () => {
    vi.useFakeTimers()
    let now = NOON
    const limiter = createLimiter({
      store: memoryStore({ clock: () => now }),
      limits: [perMinute(5), gcra({ limit: 5, window: '1m' })],
    })
    expect(vi.getTimerCount()).toBe(0)
    for (let i = 0; i < 1000; i++) await limiter.consume(`key-${i}`)
    expect(vi.getTimerCount()).toBe(1)
    vi.advanceTimersByTime(5000)
    expect(vi.getTimerCount()).toBe(1)
    now += 2 * DAY
    vi.advanceTimersByTime(5000)
    expect(vi.getTimerCount()).toBe(0)
    // The timer starts again with the next state.
    await limiter.consume('key')
    expect(vi.getTimerCount()).toBe(1)
  })

  test('100,000 expired one-shot keys take no memory', async () => {
    vi.useFakeTimers()
    let now = NOON
    const limiter = createLimiter({
      store: memoryStore({ clock: () => now, maxKeys: 1_000_000 }),
      limit: 10,
      window: '1s',
    })
    await limiter.consume('warm')
    const before = bytesOfStates()
    for (let i = 0; i < 100_000; i++) await limiter.consume(`one-shot-${i}`)
    const full = bytesOfStates()
    expect(full - before).toBeGreaterThan(2_000_000)
    now += 2 * DAY
    vi.advanceTimersByTime(60_000)
    expect(vi.getTimerCount()).toBe(0)
    expect(bytesOfStates() - before).toBeLessThan((full - before) / 5)
  })

  test('a flood that expires is freed around the identities that stay, which keep their counts', async () => {
    vi.useFakeTimers()
    let now = NOON
    const limiter = createLimiter({
      store: memoryStore({ clock: () => now, maxKeys: 1_000_000 }),
      limit: 10,
      window: '1m',
    })
    await limiter.consume('warm')
    const before = bytesOfStates()
    for (let i = 0; i < 100_000; i++) await limiter.consume(`key-${i}`, { cost: 1 + (i % 5) })
    const full = bytesOfStates()
    now += 2 * 3_600_000
    // One in a hundred, spread over all of them, comes again before the sweep.
    for (let i = 0; i < 100_000; i += 100) await limiter.consume(`key-${i}`, { cost: 1 + ((i / 100) % 7) })
    await vi.advanceTimersByTimeAsync(60_000)
    expect(bytesOfStates() - before).toBeLessThan((full - before) / 10)
    for (let i = 0; i < 100_000; i += 10) {
      const { remaining } = await limiter.peek(`key-${i}`)
      expect(remaining, `key-${i}`).toBe(i % 100 === 0 ? 9 - ((i / 100) % 7) : 10)
    }
  })

  test('a clock that steps back revives a block that had ended', async () => {
    vi.useFakeTimers()
    let now = NOON
    const limiter = createLimiter({ store: memoryStore({ clock: () => now }), limit: 5, window: '1m' })
    await limiter.block('key', { for: '10s' })
    now += 11_000
    await vi.advanceTimersByTimeAsync(5000)
    now -= 5000
    expect((await limiter.consume('key')).retryAfterMs).toBe(4000)
  })

  test('the timer of a memory store does not keep the process alive', async () => {
    const before = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const limiter = createLimiter({ limit: 5, window: '1m' })
    await limiter.consume('key')
    await limiter.block('key', { for: '1h' })
    expect(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout')).toHaveLength(before)
  })
})

const LIMIT = 40
const EVERY_ALGORITHM = [
  slidingLog({ name: 'log', limit: LIMIT, window: '1h' }),
  fixedWindow({ name: 'window', limit: LIMIT, window: '1d' }),
  gcra({ name: 'gcra', limit: LIMIT, window: '1h' }),
  slidingWindow({ name: 'segments', limit: LIMIT, window: '1h', edge: 'strict' }),
]

/** Numbers of keys, one after the other: through every size there and back. */
const SIZES = byEffort({ usual: [300, 2_000, 30, 0], full: [300, 10_000, 300, 10, 6_000, 0] })
const STEPS = byEffort({ usual: 1_500, full: 12_000 })

describe('tens of thousands of keys', () => {
  test('thousands of keys that are charged, refunded and reset in any order keep exact counts', async () => {
    const store = memoryStore({ clock: () => NOON, maxKeys: 1_000_000 })
    const limiter = createLimiter({ store, limits: EVERY_ALGORITHM })
    const spent = new Map<string, number>()
    const random = randomFrom(1)
    const expectCount = async (key: string) => {
      const left = LIMIT - (spent.get(key) ?? 0)
      expect(
        (await limiter.peek(key)).limits.map(({ remaining }) => remaining),
        key,
      ).toEqual([left, left, left, left])
    }
    // More and more keys, then fewer and fewer, repeatedly.
    for (const keys of SIZES) {
      for (let i = 0; i < STEPS; i++) {
        let key = `user:${random(2 * keys + 1)}`
        if (spent.size > keys) {
          if (!spent.has(key)) key = spent.keys().next().value as string
          await limiter.reset(key)
          spent.delete(key)
        } else {
          const cost = 1 + random(12)
          const verdict = await limiter.consume(key, { cost })
          const before = spent.get(key) ?? 0
          expect(verdict.allowed, key).toBe(before + cost <= LIMIT)
          if (verdict.allowed && random(4) > 0) spent.set(key, before + cost)
          else await limiter.refund(key, verdict)
        }
        if (i % 50 === 0) await expectCount(key)
      }
      for (const key of spent.keys()) if (random(5) === 0) await expectCount(key)
    }
  })

  test('a state takes less than 40 bytes beside its key in every algorithm, with up to two entries in a log', async () => {
    for (const [name, limit] of Object.entries({
      'exact log': slidingLog({ limit: 100, window: '1h' }),
      'fixed window': fixedWindow({ limit: 5000, window: '1d' }),
      gcra: gcra({ limit: 100, window: '1h' }),
      'two counters': slidingWindow({ limit: 5000, window: '1h' }),
    })) {
      const limiter = createLimiter({ store: memoryStore({ maxKeys: 1_000_000 }), limits: [limit] })
      await limiter.consume('warm')
      const before = bytesOfStates()
      for (let i = 0; i < 50_000; i++) await limiter.consume(`10.0.${i >> 8}.${i & 255}`)
      for (let i = 0; i < 50_000; i++) await limiter.consume(`10.0.${i >> 8}.${i & 255}`)
      expect((bytesOfStates() - before) / 50_000, name).toBeLessThan(40)
      expect((await limiter.peek('10.0.0.0')).remaining, name).toBeLessThan(5000)
    }
  })
})

test('a log that grows, lapses and is refunded counts exactly at every step', async () => {
  const [limit, window] = [300, 1000]
  let now = NOON
  const limiter = createLimiter({ store: memoryStore({ clock: () => now }), limits: [slidingLog({ limit, window })] })
  const random = randomFrom(2)
  let entries: number[] = []
  for (let i = 0; i < byEffort({ usual: 9_000, full: 300_000 }); i++) {
    // Crowds, a trickle, and silence.
    const phase = Math.floor(i / 3000) % 3
    now += random([2, 60, 900][phase] as number)
    entries = entries.filter((at) => at > now - window)
    const cost = 1 + random(8)
    const verdict = await limiter.consume('key', { cost })
    expect(verdict.allowed, `step ${i}`).toBe(entries.length + cost <= limit)
    if (verdict.allowed && random(5) > 0) for (let n = 0; n < cost; n++) entries.push(now)
    else await limiter.refund('key', verdict)
    expect((await limiter.peek('key')).remaining, `step ${i}`).toBe(limit - entries.length)
  }
})

test('one log serves several limits and is bounded by the largest, whatever the traffic', async () => {
  let now = NOON
  const limiter = createLimiter({
    store: memoryStore({ clock: () => now }),
    limits: [perSecond(1), perMinute(20), perHour(200), perDay(800)],
  })
  await limiter.consume('key')
  const before = bytesOfStates()
  for (let i = 0; i < 100_000; i++) {
    now += 4000
    await limiter.consume('key')
  }
  // Twice 800 entries of 8 bytes are 13 kB; 3,700 days of 800 would be 24 MB.
  expect(bytesOfStates() - before).toBeLessThan(2_000_000)
})

test('keys such as __proto__ and constructor count like others', async () => {
  const limiter = createLimiter({ store: memoryStore({ clock: () => NOON }), limit: 1, window: '1m' })
  for (const key of ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf']) {
    expect((await limiter.consume(key)).allowed, key).toBe(true)
    expect((await limiter.consume(key)).allowed, key).toBe(false)
    await limiter.reset(key)
    expect((await limiter.consume(key)).allowed, key).toBe(true)
    await limiter.block(key, { for: '1h' })
    expect((await limiter.consume(key)).reason, key).toBe('blocked')
  }
  expect((await limiter.consume('other')).allowed).toBe(true)
  expect({}).not.toHaveProperty('reason')
})

test('a verdict never changes after it was returned', async () => {
  let now = NOON
  const limiter = createLimiter({
    store: memoryStore({ clock: () => now }),
    limits: [perSecond(5), perMinute(20), gcra({ limit: 9, window: '1m' }), fixedWindow({ limit: 30, window: '1h' })],
  })
  const taken = []
  for (let i = 0; i < 30; i++) {
    const verdict = await limiter.consume('key')
    taken.push({ verdict, text: JSON.stringify(verdict) })
    now += 700
  }
  await limiter.refund('key', taken[0]?.verdict as never)
  await limiter.reset('key')
  for (const { verdict, text } of taken) expect(JSON.stringify(verdict)).toBe(text)
})

test('two memory stores share nothing', async () => {
  const make = () => createLimiter({ store: memoryStore({ clock: () => NOON }), limit: 1, window: '1m' })
  const [one, other] = [make(), make()]
  expect((await one.consume('key')).allowed).toBe(true)
  expect((await other.consume('key')).allowed).toBe(true)
})

test('limiters with the same name and definition share state; with another definition they do not', async () => {
  const store = memoryStore({ clock: () => NOON })
  const make = (limit: number) => createLimiter({ name: 'api', store, limit, window: '1m' })
  expect((await make(1).consume('key')).allowed).toBe(true)
  expect((await make(1).consume('key')).allowed).toBe(false)
  expect((await make(2).consume('key')).remaining).toBe(1)
})

test('a window longer than the longest timer neither overflows nor lapses', async () => {
  let now = NOON
  const limiter = createLimiter({ store: memoryStore({ clock: () => now }), limit: 1, window: '60d' })
  expect((await limiter.consume('key')).resetAfterMs).toBe(60 * DAY)
  now += 60 * DAY - 1
  expect((await limiter.consume('key')).retryAfterMs).toBe(1)
  now += 1
  expect((await limiter.consume('key')).allowed).toBe(true)
})

test('limits that differ with every request leave nothing behind once their states have ended', async () => {
  vi.useFakeTimers()
  let now = 0
  const store = memoryStore({ clock: () => now })
  const limiter = createLimiter<{ key: string; limit: number }>({
    store,
    limit: ({ limit }) => limit,
    window: '1s',
    key: ({ key }) => key,
  })
  for (let limit = 1; limit <= 50; limit++) await limiter.consume({ key: 'k', limit })
  now += 2 * 3_600_000
  await vi.advanceTimersByTimeAsync(5000)
  // The limits stay in force: one unit of the first, and no second.
  expect((await limiter.consume({ key: 'k', limit: 1 })).allowed).toBe(true)
  expect((await limiter.consume({ key: 'k', limit: 1 })).allowed).toBe(false)
  vi.useRealTimers()
})

test('a memory store without a clock option follows the fake timers of a test', async () => {
  vi.useFakeTimers()
  const limiter = createLimiter({ store: memoryStore(), limit: 1, window: '1m' })
  await limiter.consume('key')
  vi.advanceTimersByTime(59_999)
  expect((await limiter.consume('key')).retryAfterMs).toBe(1)
  vi.advanceTimersByTime(1)
  expect((await limiter.consume('key')).allowed).toBe(true)
  vi.useRealTimers()
})

describe('limiters of one name on one store', () => {
  const options = { name: 'same', limit: 2, window: '1d' } as const

  test('limiters of one name keep the counts of different kinds apart, whatever the values', async () => {
    const store = memoryStore({ clock: () => NOON })
    const byText = createLimiter({ ...options, store })
    const byAccount = createLimiter<string>({ ...options, store, key: keyed('account', (name: string) => name) })
    await byText.consume('ann', { cost: 2 })
    expect((await byAccount.consume('ann')).remaining).toBe(1)
    expect((await byAccount.consume('key=ann')).remaining).toBe(1)
    expect((await byText.peek('ann')).remaining).toBe(0)
  })

  test('a wrapper around a store can keep the counts of tenants apart', async () => {
    const store = memoryStore({ clock: () => NOON })
    const ofTenant = (tenant: string): Store => ({
      ...store,
      decide: (request) =>
        store.decide({ ...request, identities: request.identities.map((text) => text.replace('=', `=${tenant}/`)) }),
      close: async () => {},
    })
    const [one, two] = [
      createLimiter({ ...options, store: ofTenant('a') }),
      createLimiter({ ...options, store: ofTenant('b') }),
    ]
    expect((await one.consume('ann', { cost: 2 })).remaining).toBe(0)
    expect((await two.consume('ann')).remaining).toBe(1)
  })

  test('an identity given by its kind has the same state as the one of a request', async () => {
    const limiter = createLimiter({ ...options, store: memoryStore({ clock: () => NOON }) })
    const given = { key: 'a=b' } as unknown as string
    const verdict = await limiter.consume('a=b')
    expect((await limiter.consume(given)).remaining).toBe(0)
    expect(await limiter.refund(given, verdict)).toBe(true)
    expect((await limiter.peek('a=b')).remaining).toBe(1)
    await limiter.reset(given)
    expect((await limiter.peek('a=b')).remaining).toBe(2)
  })
})
