import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  type LimiterOptions,
  leakyBucket,
  memoryStore,
  perHour,
  perMinute,
  slidingLog,
  slidingWindow,
  tokenBucket,
  type Verdict,
} from '@sluice/core'
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { ofEachUnit } from '../../contract/create-limiter.js'
import { byEffort } from '../../support/effort.js'
import { type Distant, distantStore } from '../../support/outages.js'

let now: number
let store: Distant
beforeEach(() => {
  now = 1_000_000_000
  store = distantStore(() => now)
})

const limiterOf = (options: Partial<LimiterOptions<string>> & { limits: readonly Limit<string>[] }) =>
  createLimiter<string>({ name: 'outage', store, ...options } as never)

async function admittedOf(limiter: { consume(key: string): Promise<Verdict> }, times: number): Promise<number> {
  let admitted = 0
  for (let n = 0; n < times; n++) if ((await limiter.consume('k')).allowed) admitted++
  return admitted
}

describe('by default, during an outage', () => {
  test('during an outage the same limits hold in this process, and verdicts say so', async () => {
    const limiter = limiterOf({ limits: [gcra({ limit: 2, window: '10s' })] })
    expect((await limiter.consume('k')).kind).toBe('decided')
    store.isAway = true
    expect(await limiter.consume('k')).toMatchObject({ kind: 'unavailable', allowed: true, remaining: 1, cost: 1 })
    expect(await limiter.consume('k')).toMatchObject({ kind: 'unavailable', allowed: true, remaining: 0 })
    const refusal = await limiter.consume('k')
    expect(refusal).toMatchObject({ kind: 'unavailable', allowed: false, reason: 'limited', retryAfterMs: 5000 })
    now += 4999
    expect((await limiter.peek('k')).allowed).toBe(false)
    now += 1
    expect(await limiter.peek('k')).toMatchObject({ allowed: true, kind: 'unavailable' })
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  test.each(['greedy', 'interval'] as const)(
    'during an outage a debt of a %s bucket goes on to be paid',
    async (style) => {
      const limits = [tokenBucket<string>({ unit: 'tokens', capacity: 30, refill: 10, every: '10s', style })]
      const limiter = limiterOf({ limits })
      const verdict = await limiter.consume('k', { cost: { tokens: 10 } })
      await verdict.settle({ tokens: 45 })
      const one = { cost: { tokens: 1 } }
      const { retryAfterMs, resetAfterMs } = await limiter.peek('k', one)
      expect(retryAfterMs).toBeGreaterThan(10_000)
      store.isAway = true
      expect(await limiter.peek('k', one)).toMatchObject({ kind: 'unavailable', retryAfterMs, resetAfterMs })
    },
  )

  test('during an outage limiters of one name and the same limits still share their counts', async () => {
    const options = { limits: [perMinute<string>(3)] }
    const [one, other] = [limiterOf(options), limiterOf(options)]
    store.isAway = true
    expect((await admittedOf(one, 2)) + (await admittedOf(other, 2))).toBe(3)
  })

  test('after an outage the store decides at once, and local counts are remembered for the next outage', async () => {
    const limiter = limiterOf({ limits: [perMinute(3)] })
    await limiter.consume('k')
    store.isAway = true
    expect(await admittedOf(limiter, 5)).toBe(3)
    store.isAway = false
    expect(await limiter.consume('k')).toMatchObject({ kind: 'decided', allowed: true, remaining: 1 })
    // A store that comes and goes must not mean a fresh quota each time.
    store.isAway = true
    expect((await limiter.consume('k')).allowed).toBe(false)
    now += 60_000
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  test('a charge is refunded only where it was made: in the store or in this process', async () => {
    const limiter = limiterOf({ limits: [perMinute(5)] })
    const shared = await limiter.consume('k', { cost: 2 })
    store.isAway = true
    const local = await limiter.consume('k', { cost: 4 })
    expect(await limiter.refund('k', shared)).toBe(false)
    expect((await limiter.peek('k')).remaining).toBe(1)
    store.isAway = false
    expect((await limiter.peek('k')).remaining).toBe(3)
    expect(await limiter.refund('k', local)).toBe(true)
    expect(await limiter.refund('k', local)).toBe(false)
    expect((await limiter.peek('k')).remaining).toBe(3)
    // The store may have received it all the same, so it is not sent again.
    expect(await limiter.refund('k', shared)).toBe(false)
    expect((await limiter.peek('k')).remaining).toBe(3)
    store.isAway = true
    expect((await limiter.peek('k')).remaining).toBe(5)
  })

  const atMinutes: [string, Limit<string>, number][] = [
    ['an exact log', slidingLog({ limit: 4, window: '1m' }), 60_000],
    ['a fixed window by the clock', fixedWindow({ limit: 4, window: '1m', anchor: 'clock' }), 60_000],
    ['a fixed window from the first request', fixedWindow({ limit: 4, window: '1m' }), 60_000],
    ['GCRA', gcra({ limit: 4, window: '1m' }), 15_000],
    ['an interval bucket', tokenBucket({ capacity: 4, refill: 4, every: '1m', style: 'interval' }), 60_000],
    ['a leaky bucket', leakyBucket({ capacity: 4, leak: 4, every: '1m' }), 15_000],
  ]
  test.each(atMinutes)(
    'in an outage a client at the limit of %s is refused until its earlier retry-after',
    async (_, limit, ms) => {
      now = 1_000_020_000
      const limiter = limiterOf({ limits: [limit] })
      expect(await admittedOf(limiter, 4)).toBe(4)
      now += 5000
      const retryAfterMs = (await limiter.peek('k')).retryAfterMs as number
      store.isAway = true
      expect(await limiter.consume('k')).toMatchObject({ kind: 'unavailable', allowed: false, retryAfterMs })
      expect(retryAfterMs).toBeLessThanOrEqual(ms)
      now += retryAfterMs - 1
      expect((await limiter.consume('k')).allowed).toBe(false)
      now += 1
      expect((await limiter.consume('k')).allowed).toBe(true)
      expect((await limiter.consume('other')).remaining).toBe(3)
    },
  )

  test('in an outage a client at the limit of a segmented window is not admitted before its retry-after', async () => {
    const limiter = limiterOf({ limits: [slidingWindow({ limit: 4, window: '1m' })] })
    expect(await admittedOf(limiter, 4)).toBe(4)
    now += 5000
    const retryAfterMs = (await limiter.peek('k')).retryAfterMs as number
    store.isAway = true
    now += retryAfterMs - 1
    expect((await limiter.consume('k')).allowed).toBe(false)
    now += 60_000
    expect(await admittedOf(limiter, 5)).toBe(4)
  })

  test('local counting continues at the share of the limit, from the share of the usage', async () => {
    const limiter = limiterOf({ limits: [perMinute(100)], unavailable: { share: 0.25 } })
    await limiter.consume('k', { cost: 80 })
    store.isAway = true
    expect(await admittedOf(limiter, 10)).toBe(5)
  })

  test('each limit carries its own usage into the outage, without refunds and resets', async () => {
    const limiter = limiterOf({ limits: [gcra({ limit: 10, window: '1m' }), fixedWindow({ limit: 4, window: '1h' })] })
    await limiter.consume('k', { cost: 3 })
    const verdict = await limiter.consume('back', { cost: 4 })
    await limiter.refund('back', verdict)
    await limiter.consume('reset', { cost: 4 })
    await limiter.reset('reset')
    store.isAway = true
    expect((await limiter.consume('k')).allowed).toBe(true)
    expect((await limiter.consume('k')).allowed).toBe(false)
    expect((await limiter.consume('back', { cost: 4 })).allowed).toBe(true)
    expect((await limiter.consume('reset', { cost: 4 })).allowed).toBe(true)
  })

  test('of limits that share a log, the one with the least left carries its whole usage into the outage', async () => {
    const log = (limit: number, window: '1m' | '1h') => slidingLog<string>({ limit, window })
    const limiter = limiterOf({ limits: [log(2, '1m'), log(10, '1h')] })
    for (let n = 0; n < 9; n++, now += 60_000) await limiter.consume('k')
    store.isAway = true
    expect((await limiter.peek('k')).remaining).toBe(1)
    expect(await admittedOf(limiter, 2)).toBe(1)
  })

  test('during an outage, settle, renew and release of a verdict of the store throw no error', async () => {
    const limiter = limiterOf({ limits: [perMinute(5), concurrency({ limit: 2 })] })
    const verdict = await limiter.consume('k', { cost: 2 })
    store.isAway = true
    expect(await verdict.settle(1)).toBe(false)
    await limiter.renew(verdict)
    await limiter.release(verdict)
    const local = await limiter.consume('k', { cost: { requests: 2, 'concurrent-requests': 2 } })
    expect((await limiter.consume('k')).allowed).toBe(false)
    await limiter.release(local)
    expect((await limiter.consume('k')).allowed).toBe(true)
    expect(await local.settle(1)).toBe(true)
  })

  test('a reset in an outage forgets what this process has counted, in every tier', async () => {
    const tiers = { free: [perMinute<string>(1)], pro: [perHour<string>(1)] }
    const limiter = createLimiter({ name: 'outage', store, tiers, tier: () => 'free' })
    store.isAway = true
    for (const tier of ['free', 'pro']) await limiter.consume('k', { tier })
    await expect(limiter.reset('k')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    for (const tier of ['free', 'pro']) expect((await limiter.peek('k', { tier })).remaining).toBe(1)
  })

  test('during an outage block, unblock and reset throw, as their effect would be unknown', async () => {
    const limiter = limiterOf({ limits: [perMinute(1)] })
    store.isAway = true
    await limiter.consume('k')
    await expect(limiter.block('k', { for: '1h' })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect(limiter.unblock('k')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect(limiter.reset('k')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    // This process forgets the count all the same.
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  test('request-dependent limits, tiers, priorities and charged refusals hold during an outage', async () => {
    store.isAway = true
    const byKey = limiterOf({ limits: [slidingLog({ limit: (key) => key.length, window: '1m' })] })
    expect(await Promise.all(['a', 'ab'].map(async (key) => (await byKey.consume(key)).remaining))).toEqual([0, 1])
    const tiered = createLimiter<string>({
      name: 'tiered',
      store,
      tiers: { free: [perMinute(1)], pro: [perMinute(9, { reserve: 5 })] },
      tier: (key) => (key === 'ann' ? 'pro' : 'free'),
    })
    expect(await tiered.consume('ann')).toMatchObject({ tier: 'pro', remaining: 3 })
    expect(await tiered.consume('ann', { priority: 1 })).toMatchObject({ remaining: 7, priority: 1 })
    const strict = limiterOf({ limits: [gcra({ limit: 3, window: '30s' })], onDeny: 'charge' })
    expect((await strict.consume('k', { cost: 2 })).allowed).toBe(true)
    expect((await strict.consume('k', { cost: 2 })).allowed).toBe(false)
    expect((await strict.peek('k')).remaining).toBe(0)
  })

  test('errors other than an outage stay errors', async () => {
    const broken = { ...store, decide: () => Promise.reject(new TypeError('a bug')) }
    const limiter = createLimiter({ store: broken, limit: 1, window: '1m' })
    await expect(limiter.consume('k')).rejects.toThrow('a bug')
  })
})

test('a store that responds synchronously gets no local fallback', async () => {
  const inProcess = memoryStore({ clock: () => now })
  let reads = 0
  const counting = new Proxy(inProcess, {
    get(target, name) {
      // The local fallback uses the clock of the store.
      if (name === 'clock') reads++
      const value = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const limiter = limiterOf({ store: counting, limits: [perMinute(10), concurrency({ limit: 4 })] })
  const verdicts = [await limiter.consume('k', { cost: 3 }), await limiter.consume('k')]
  const before = reads
  expect(await verdicts[0]?.settle(1)).toBe(true)
  expect(await limiter.refund('k', verdicts[1] as Verdict)).toBe(true)
  await limiter.release(verdicts[0])
  expect(reads).toBe(before)
})

describe('unavailable.share', () => {
  const whole = fc.integer({ min: 1, max: 400 })
  const ALGORITHMS: Record<string, (limit: number, capacity: number) => Limit<string>> = {
    slidingLog: (limit) => slidingLog({ limit, window: '1h' }),
    'fixedWindow by clock': (limit) => fixedWindow({ limit, window: '1h' }),
    'fixedWindow by first request': (limit) => fixedWindow({ limit, window: '1h', anchor: 'first-request' }),
    'slidingWindow weighted': (limit) => slidingWindow({ limit, window: '1h' }),
    'slidingWindow strict': (limit) => slidingWindow({ limit, window: '1h', edge: 'strict', segments: 6 }),
    gcra: (limit, burst) => gcra({ limit, window: '1h', burst }),
    'tokenBucket greedy': (refill, capacity) => tokenBucket({ refill, every: '1h', capacity }),
    'tokenBucket by intervals': (refill, capacity) => tokenBucket({ refill, every: '1h', capacity, style: 'interval' }),
    leakyBucket: (leak, capacity) => leakyBucket({ leak, every: '1h', capacity }),
    concurrency: (limit) => concurrency({ limit }),
  }

  test.each(Object.entries(ALGORITHMS))(
    'the local share of %s is admitted at once, rounded down to at least 1, and reported',
    async (_name, algorithm) => {
      store.isAway = true
      let keys = 0
      await fc.assert(
        fc.asyncProperty(whole, whole, fc.integer({ min: 1, max: 9 }), async (limit, capacity, processes) => {
          const limiter = limiterOf({ limits: [algorithm(limit, capacity)], unavailable: { share: 1 / processes } })
          const key = `k${keys++}`
          const report = (await limiter.peek(key)).limits[0]
          const holds = (units: number) => Math.max(1, Math.floor(units / processes))
          const own = algorithm(limit, capacity).resolve('', limit, 3_600_000).report.capacity
          expect(report).toMatchObject({ limit: holds(limit), capacity: holds(own), remaining: holds(own) })
          const cost = ofEachUnit(limiter.limits, holds(own))
          expect((await limiter.consume(key, { cost })).allowed).toBe(true)
          expect((await limiter.consume(key)).allowed).toBe(false)
        }),
        { numRuns: byEffort({ quick: 15, usual: 20, full: 600 }) },
      )
    },
  )

  test('a share applies during the outage only, and to all limits', async () => {
    const limiter = limiterOf({
      limits: [perMinute(10), perHour(40), concurrency({ limit: 4 })],
      unavailable: { share: 0.25 },
    })
    expect((await limiter.consume('k')).limits.map(({ limit }) => limit)).toEqual([10, 40, 4])
    store.isAway = true
    const verdict = await limiter.consume('k')
    expect(verdict.limits.map(({ limit, remaining }) => [limit, remaining])).toEqual([
      [2, 1],
      [10, 9],
      [1, 0],
    ])
    expect(await limiter.refund('k', verdict)).toBe(true)
    expect((await limiter.peek('k')).limits.map(({ remaining }) => remaining)).toEqual([2, 10, 1])
  })

  test('a share of a limit of 0 is 0', async () => {
    store.isAway = true
    const limiter = limiterOf({ limits: [gcra({ limit: 0, window: '1s' })], unavailable: { share: 0.5 } })
    expect(await limiter.consume('k')).toMatchObject({ allowed: false, reason: 'impossible' })
  })

  test('a share reduces reserves, too, and leaves at least one unit unreserved', async () => {
    const limiter = limiterOf({ limits: [gcra({ limit: 20, window: '1h', reserve: 10 })], unavailable: { share: 0.5 } })
    const small = limiterOf({
      name: 'small',
      limits: [gcra({ limit: 5, window: '1h', reserve: 4 })],
      unavailable: { share: 0.5 },
    })
    store.isAway = true
    expect(await admittedOf(limiter, 20)).toBe(5)
    expect((await limiter.consume('k', { priority: 1 })).allowed).toBe(true)
    expect(await admittedOf(small, 5)).toBe(1)
  })

  test('a cost above the share is refused as unavailable, not as impossible', async () => {
    const limiter = limiterOf({ limits: [perMinute(10)], unavailable: { share: 0.5 } })
    store.isAway = true
    const refusal = await limiter.consume('k', { cost: 6 })
    expect(refusal).toMatchObject({ kind: 'unavailable', allowed: false, reason: 'unavailable', retryAfterMs: 2000 })
    expect((await limiter.consume('k', { cost: 11 })).reason).toBe('impossible')
    expect((await limiter.consume('k', { cost: 5 })).allowed).toBe(true)
  })
})

describe('unavailable.decide: allow and deny', () => {
  const NOTHING_KNOWN = { kind: 'unavailable', remaining: 0, resetAfterMs: 0, delayMs: 0, limits: [], cost: 0 }

  test('decide "allow" admits all: verdicts have no numbers, and nothing is charged or refunded', async () => {
    const limiter = limiterOf({ limits: [perMinute(1)], unavailable: { decide: 'allow' } })
    store.isAway = true
    const verdicts = [await limiter.consume('k'), await limiter.consume('k', { cost: 9 }), await limiter.peek('k')]
    for (const verdict of verdicts) {
      expect(verdict).toMatchObject({ ...NOTHING_KNOWN, allowed: true, reason: undefined, retryAfterMs: 0 })
      expect(await limiter.refund('k', verdict)).toBe(false)
      for (const cost of [0, 3]) expect(await verdict.settle(cost)).toBe(false)
      expect(await limiter.settle(verdict, 3)).toBe(false)
      await limiter.release(verdict)
    }
    expect(await limiter.acquire('k')).toMatchObject({ kind: 'unavailable', allowed: true })
    store.isAway = false
    expect((await limiter.peek('k')).remaining).toBe(1)
  })

  test('decide "deny" refuses all with the reason "unavailable"', async () => {
    const limiter = limiterOf({ limits: [perMinute(9)], unavailable: { decide: 'deny' } })
    store.isAway = true
    for (const verdict of [
      await limiter.consume('k'),
      await limiter.peek('k'),
      await limiter.consume('k', { cost: 0 }),
    ]) {
      expect(verdict).toMatchObject({ ...NOTHING_KNOWN, allowed: false, reason: 'unavailable', retryAfterMs: 2000 })
    }
    await expect(limiter.acquire('k', { maxWait: 20 })).rejects.toMatchObject({ code: 'WAIT_EXCEEDED' })
    const waiting = limiter.acquire('k', { maxWait: '10s' })
    store.isAway = false
    expect(await waiting).toMatchObject({ kind: 'decided', allowed: true, remaining: 8 })
  })
})

test('an outage that begins while requests wait ends no wait, and charges none twice', async () => {
  const limiter = limiterOf({ limits: [concurrency({ limit: 1 })] })
  const first = await limiter.acquire('k')
  const waiting = limiter.acquire('k', { maxWait: '10s' })
  store.isAway = true
  const second = await waiting
  expect(second.kind).toBe('unavailable')
  expect((await limiter.consume('k')).allowed).toBe(false)
  store.isAway = false
  expect((await limiter.consume('k')).allowed).toBe(false)
  await limiter.release(second)
  expect((await limiter.peek('k')).allowed).toBe(false)
  await limiter.release(first)
  expect((await limiter.peek('k')).allowed).toBe(true)
})

test.each([1, 0.5])(
  'during an outage at a share of %s, a refund makes room for a request that waits',
  async (share) => {
    const limiter = limiterOf({ limits: [slidingLog({ limit: 1, window: '1h' })], unavailable: { share } })
    store.isAway = true
    const first = await limiter.consume('k')
    const admitted: Verdict[] = []
    void limiter.acquire('k', { maxWait: '2h' }).then((verdict) => admitted.push(verdict))
    await sleep(20)
    await limiter.refund('k', first)
    await setImmediate()
    expect(admitted).toMatchObject([{ kind: 'unavailable', allowed: true }])
  },
)

test('a request that waits by the counts of this process is decided by the store once that is back', async () => {
  const limiter = limiterOf({ limits: [slidingLog({ limit: 1, window: '1h' })] })
  store.isAway = true
  await limiter.consume('k')
  const waiting = limiter.acquire('k', { maxWait: '2h' })
  await sleep(20)
  store.isAway = false
  expect(await waiting).toMatchObject({ kind: 'decided', allowed: true })
})

test('invalid unavailable options are rejected', () => {
  const make = (options: object) => () => createLimiter({ name: 'api', store, limit: 1, window: '1s', ...options })
  expect(make({ unavailable: { decide: 'error' } })).toThrow(
    'policy "api": unavailable: decide: expected "local" or "allow" or "deny", got "error"',
  )
  for (const share of [0, -1, 1.1, Number.NaN, '1']) {
    expect(make({ unavailable: { share } })).toThrow(
      'policy "api": unavailable: share: expected a number above 0, up to 1',
    )
  }
  expect(make({ unavailable: { share: 0.5, decide: 'deny' } })).toThrow(
    'policy "api": unavailable: share: expected none beside decide "deny"',
  )
})
