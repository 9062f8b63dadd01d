import assert from 'node:assert/strict'
import {
  calendarMonth,
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  perHour,
  perMinute,
  type Store,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'
import { BANS } from '@sluice/core/store'
import { MIDNIGHT_MS, type TestClock, testClock } from './clock.js'
import { freshKey } from './fresh-key.js'
import { keptChargeTests } from './kept-charge-tests.js'
import type { TestRunner } from './runner.js'
import { checkVector } from './vectors/check.js'
import { VECTORS } from './vectors/vector.js'

/** The store under test, and the test runner. */
export interface StoreContractOptions extends TestRunner {
  /** The name of the store in tests. */
  readonly name: string
  /**
   * Makes a store whose time `clock` returns.
   *
   * Called for each test, which closes the store at its end. Data of earlier tests may remain: keys are new ones.
   */
  readonly make: (clock: () => number) => Store | Promise<Store>
}

/** Registers a test with a store and a clock of its own. */
type On = (title: string, body: (store: Store, clock: TestClock) => Promise<void>) => void

/**
 * Registers the tests that every store has to pass: the numbers of each algorithm, that limits are charged all or none,
 * refunds, resets, permits and blocks.
 *
 * @example storeContract({ name: 'my store', make: (clock) => myStore({ clock }), describe, test })
 */
export function storeContract({ name, make, describe, test }: StoreContractOptions): void {
  const on: On = (title, body) => {
    test(title, async () => {
      const clock = testClock(MIDNIGHT_MS)
      const store = await make(clock)
      try {
        await body(store, clock)
      } finally {
        await store.close()
      }
    })
  }

  for (const [file, vectors] of Object.entries(VECTORS)) {
    describe(`${file} on ${name}`, () => {
      for (const vector of vectors) on(vector.title, (store, clock) => checkVector(vector, store, clock.set))
    })
  }

  describe(`charges on ${name}`, () => chargeTests(on))
  describe(`refunds and resets on ${name}`, () => refundTests(on))
  describe(`kept charges on ${name}`, () => keptChargeTests(on, ONE_OF_EACH))
  describe(`debts on ${name}`, () => debtTests(on))
  describe(`limits with changing amounts on ${name}`, () => documentTests(on))
  describe(`windows of the calendar on ${name}`, () => calendarTests(on))
  describe(`permits on ${name}`, () => permitTests(on))
  describe(`blocks on ${name}`, () => blockTests(on))
}

function chargeTests(on: On): void {
  on('concurrent requests are admitted exactly up to the limit, whatever their cost', async (store) => {
    const limiter = createLimiter({ store, limits: [perMinute(100), perHour(90)] })
    const key = freshKey()
    const verdicts = Array.from({ length: 200 }, (_, i) => limiter.consume(key, { cost: 1 + (i % 3) }))
    const admitted = (await Promise.all(verdicts)).filter(({ allowed }) => allowed)
    assert.equal(
      admitted.reduce((sum, { cost }) => sum + cost, 0),
      90,
    )
  })

  on('a refusal by one limit charges none of the others', async (store) => {
    const limiter = createLimiter({
      store,
      limits: [slidingLog({ limit: 1, window: '1m' }), gcra({ limit: 9, window: '1h' })],
    })
    const key = freshKey()
    const remaining = async () => (await limiter.peek(key)).limits.map((limit) => limit.remaining)
    assert.equal((await limiter.consume(key)).allowed, true)
    assert.equal((await limiter.consume(key)).allowed, false)
    assert.deepEqual(await remaining(), [0, 8])
  })

  on('a peek changes nothing', async (store) => {
    const limiter = createLimiter({ store, limit: 2, window: '1m' })
    const key = freshKey()
    for (let n = 0; n < 5; n++) assert.equal((await limiter.peek(key)).remaining, 2)
  })

  on('a client is admitted after retryAfterMs, and not a millisecond earlier', async (store, clock) => {
    for (const [algorithm, limit] of Object.entries(ONE_OF_EACH)) {
      const limiter = createLimiter({ store, limits: [limit] })
      const key = freshKey()
      clock.set(MIDNIGHT_MS + 1)
      let verdict = await limiter.consume(key)
      for (let n = 0; n < 20 && verdict.allowed; n++) verdict = await limiter.consume(key)
      assert.equal(verdict.allowed, false, `${algorithm}: refused in the end`)
      const { retryAfterMs = 0 } = verdict
      clock.advance(retryAfterMs - 1)
      assert.equal((await limiter.peek(key)).allowed, false, `${algorithm}: a millisecond early`)
      clock.advance(1)
      assert.equal((await limiter.consume(key)).allowed, true, `${algorithm}: after ${retryAfterMs} ms`)
    }
  })

  on('a clock that steps back frees no units', async (store, clock) => {
    for (const [algorithm, limit] of Object.entries(ONE_OF_EACH)) {
      const limiter = createLimiter({ store, limits: [limit] })
      const key = freshKey()
      clock.set(MIDNIGHT_MS + 3_600_000)
      const { remaining } = await limiter.consume(key)
      clock.advance(-5000)
      assert((await limiter.peek(key)).remaining <= remaining, algorithm)
    }
  })
}

function refundTests(on: On): void {
  for (const [algorithm, limit] of Object.entries(ONE_OF_EACH)) {
    on(`a refund returns the charged units, once: ${algorithm}`, async (store) => {
      const limiter = createLimiter({ store, limits: [limit] })
      const key = freshKey()
      const { remaining } = await limiter.peek(key)
      const verdict = await limiter.consume(key, { cost: 2 })
      assert.equal((await limiter.peek(key)).remaining, remaining - 2)
      assert.equal(await limiter.refund(key, verdict), true)
      assert.equal(await limiter.refund(key, verdict), false)
      assert.equal((await limiter.peek(key)).remaining, remaining)
    })

    on(`a refund of a lapsed charge changes nothing and does not fail: ${algorithm}`, async (store, clock) => {
      const limiter = createLimiter({ store, limits: [limit] })
      const key = freshKey()
      const { remaining } = await limiter.peek(key)
      const verdict = await limiter.consume(key)
      clock.advance('1d')
      await limiter.refund(key, verdict)
      assert.equal((await limiter.peek(key)).remaining, remaining)
    })

    on(
      `a reset clears one key, and a later refund of an earlier charge returns nothing: ${algorithm}`,
      async (store) => {
        const limiter = createLimiter({ store, limits: [limit] })
        const [key, other] = [freshKey(), freshKey()]
        const before = await limiter.consume(key, { cost: 2 })
        await limiter.consume(other)
        await limiter.reset(key)
        assert.equal((await limiter.peek(key)).resetAfterMs, 0)
        assert.notEqual((await limiter.peek(other)).resetAfterMs, 0)
        const since = await limiter.consume(key)
        await limiter.refund(key, before)
        assert.equal((await limiter.peek(key)).remaining, since.remaining)
      },
    )
  }
}

function debtTests(on: On): void {
  for (const [algorithm, limit] of Object.entries(ONE_OF_EACH)) {
    on(
      `units above a charge are charged whatever room there is, for two windows at most: ${algorithm}`,
      async (store, clock) => {
        const limiter = createLimiter({ store, limits: [limit] })
        const key = freshKey()
        const { remaining } = await limiter.peek(key)
        const verdict = await limiter.consume(key)
        assert.equal(await verdict.settle({ [limit.unit]: remaining + 5 }), true)
        assert.equal(await verdict.settle({ [limit.unit]: 0 }), false)
        const refused = await limiter.consume(key)
        assert.deepEqual([refused.allowed, refused.remaining], [false, 0])
        assert((refused.retryAfterMs ?? 0) <= 120_000, 'no client is refused for longer than two windows')
        clock.advance(refused.retryAfterMs ?? 0)
        assert.equal((await limiter.consume(key)).allowed, true)
      },
    )

    on(`a charge without room takes nothing off a debt: ${algorithm}`, async (store) => {
      const limiter = createLimiter({ store, limits: [limit] })
      const key = freshKey()
      const [verdict, streaming] = [await limiter.consume(key), await limiter.consume(key)]
      await verdict.settle({ [limit.unit]: 1000 })
      const before = await limiter.peek(key)
      const meter = streaming.meter(limit.unit)
      await meter.add(3)
      await meter.end()
      const after = await limiter.peek(key)
      assert.equal(after.retryAfterMs, before.retryAfterMs)
      assert(after.resetAfterMs >= before.resetAfterMs, 'the debt lasts as long as before')
    })
  }
}

const DAY_MS = 86_400_000

function calendarTests(on: On): void {
  on('a month ends where its time zone says, to the millisecond', async (store, clock) => {
    const limits = [calendarMonth<string>(4, { timeZone: 'Europe/Berlin' })]
    const limiter = createLimiter({ store: withClock(store, clock), limits })
    const key = freshKey()
    clock.set(Date.parse('2026-03-31T21:59:59.000Z'))
    await limiter.consume(key, { cost: 4 })
    assert.equal((await limiter.consume(key)).retryAfterMs, 1000)
    clock.advance(999)
    assert.equal((await limiter.consume(key)).allowed, false)
    clock.advance(1)
    const next = await limiter.consume(key)
    assert.deepEqual([next.allowed, next.remaining, next.resetAfterMs], [true, 3, 30 * DAY_MS])
  })

  on('a window that runs keeps its count and its end where other bounds come', async (store, clock) => {
    let startsOn = 1
    const limits = [calendarMonth<string>(1, { startsOn: () => startsOn })]
    const limiter = createLimiter({ store: withClock(store, clock), limits })
    const key = freshKey()
    clock.set(Date.parse('2026-06-10T00:00:00Z'))
    await limiter.consume(key)
    startsOn = 11
    assert.equal((await limiter.consume(key)).retryAfterMs, 21 * DAY_MS)
    clock.advance(21 * DAY_MS)
    const next = await limiter.consume(key)
    assert.deepEqual([next.allowed, next.resetAfterMs], [true, 10 * DAY_MS])
  })

  on('a clock that steps back into an earlier period gives no period twice', async (store, clock) => {
    const limiter = createLimiter({
      store: withClock(store, clock),
      limits: [fixedWindow<string>({ limit: 1, window: 'day' })],
    })
    const key = freshKey()
    clock.set(MIDNIGHT_MS + 1000)
    await limiter.consume(key)
    clock.advance(-60_000)
    assert.equal((await limiter.consume(key)).retryAfterMs, DAY_MS + 59_000)
  })
}

/** A store that shows its clock to limiters, which compute the bounds of periods by it. */
function withClock(store: Store, clock: () => number): Store {
  return {
    clock,
    decide: (request) => store.decide(request),
    reset: (plan, identities) => store.reset(plan, identities),
    close: async () => {},
    [BANS]: store[BANS],
  }
}

function documentTests(on: On): void {
  for (const [algorithm, limitOf] of Object.entries(BY_AMOUNT)) {
    on(`units charged under one amount count under another, and neither forgets them: ${algorithm}`, async (store) => {
      const by = (amount: number) => {
        const limit = Object.freeze({ ...limitOf(amount), policy: 'api', carry: '' })
        return createLimiter<string>({ store, limits: [limit] })
      }
      const [few, many] = [by(3), by(10)]
      const key = freshKey()
      const charge = await many.consume(key, { cost: 7 })
      const refused = await few.consume(key)
      assert.deepEqual([refused.allowed, refused.remaining], [false, 0])
      assert((refused.retryAfterMs ?? 0) <= 120_000, 'no client is refused for longer than two windows')
      assert.equal((await many.peek(key)).remaining, 3, 'a refusal forgets nothing')
      await many.refund(key, charge)
      assert.equal((await few.peek(key)).remaining, 3)
    })
  }
}

function permitTests(on: On): void {
  on('permits are released, renewed, and lapse', async (store, clock) => {
    const limiter = createLimiter({ store, limits: [concurrency({ limit: 2, ttl: '10s' })] })
    const key = freshKey()
    const [one, other] = [await limiter.consume(key), await limiter.consume(key)]
    assert.equal((await limiter.consume(key)).allowed, false)
    await limiter.release(one)
    assert.equal((await limiter.peek(key)).remaining, 1)
    clock.advance('9s')
    await limiter.renew(other)
    clock.advance('9s')
    assert.equal((await limiter.peek(key)).remaining, 1)
    clock.advance('1s')
    assert.equal((await limiter.peek(key)).remaining, 2)
  })
}

function blockTests(given: On): void {
  given('a store that blocks no identities rejects a block', async (store) => {
    if (store[BANS]) return
    const limiter = createLimiter({ store, limit: 1, window: '1m' })
    await assert.rejects(limiter.block(freshKey(), { for: '1m' }), /store\[BANS\]/)
  })
  const on: On = (title, body) =>
    given(title, async (store, clock) => {
      if (store[BANS]) await body(store, clock)
    })

  on('blocks refuse until their exact end, charge nothing, and are not extended by requests', async (store, clock) => {
    const policy = freshKey()
    const limiter = createLimiter({ name: policy, store, limit: 5, window: '1m' })
    const elsewhere = createLimiter({ name: `${policy}-2`, store, limit: 5, window: '1m' })
    const key = freshKey()
    const reason = 'scraping, "again"\n'
    await limiter.block(key, { for: '10m', reason })
    for (const ms of [0, 1, 300_000, 599_999]) {
      clock.set(MIDNIGHT_MS + ms)
      const { allowed, retryAfterMs, block } = await limiter.consume(key)
      assert.deepEqual(
        { allowed, retryAfterMs, block: { ...block } },
        {
          allowed: false,
          retryAfterMs: 600_000 - ms,
          block: { reason, remainingMs: 600_000 - ms },
        },
      )
    }
    assert.equal((await elsewhere.peek(key)).allowed, true, 'limiters of another name do not know it')
    clock.set(MIDNIGHT_MS + 600_000)
    assert.equal((await limiter.consume(key)).remaining, 4)
  })

  on('blocks can be lifted, are replaced by the next, and outlive a reset', async (store) => {
    const limiter = createLimiter({ name: freshKey(), store, limit: 5, window: '1m' })
    const key = freshKey()
    await limiter.block(key, { for: '1h' })
    await limiter.block(key, { for: '1m', reason: 'second' })
    assert.equal((await limiter.peek(key)).block?.reason, 'second')
    await limiter.reset(key)
    assert.equal((await limiter.peek(key)).reason, 'blocked')
    await limiter.unblock(key)
    assert.equal((await limiter.consume(key)).allowed, true)
    // Lifting a block that does not exist is no error.
    await limiter.unblock(key)
  })
}

/** A limit of each kind of state, by its amount. */
const BY_AMOUNT: Readonly<Record<string, (limit: number) => Limit<string>>> = {
  'sliding log': (limit) => slidingLog({ limit, window: '1m' }),
  'fixed window': (limit) => fixedWindow({ limit, window: '1m' }),
  'strict sliding window': (limit) => slidingWindow({ limit, window: '1m', segments: 4, edge: 'strict' }),
  gcra: (limit) => gcra({ limit, window: '1m' }),
}

/** Limits of some units over a minute, of each algorithm that charges over time. */
const ONE_OF_EACH: Readonly<Record<string, Limit<string>>> = {
  'sliding log': slidingLog({ limit: 4, window: '1m' }),
  'fixed window': fixedWindow({ limit: 4, window: '1m' }),
  'fixed window from the first request': fixedWindow({ limit: 4, window: '1m', anchor: 'first-request' }),
  'sliding window': slidingWindow({ limit: 4, window: '1m', segments: 4 }),
  'strict sliding window': slidingWindow({ limit: 4, window: '1m', segments: 4, edge: 'strict' }),
  gcra: gcra({ limit: 4, window: '1m', burst: 4 }),
  'token bucket': tokenBucket({ capacity: 4, refill: 4, every: '1m' }),
  'token bucket by interval': tokenBucket({ capacity: 4, refill: 4, every: '1m', style: 'interval' }),
}
