import assert from 'node:assert/strict'
import {
  concurrency,
  createLimiter,
  fixedWindow,
  type Limit,
  type Limiter,
  memoryStore,
  perMinute,
  type Store,
  tokenBucket,
  type Verdict,
} from '@sluice/core'
import { KEPT_CHARGES } from '@sluice/core/store'
import type { TestClock } from './clock.js'
import { freshKey } from './fresh-key.js'

/** Registers a test with a store and a clock of its own. */
type On = (title: string, body: (store: Store, clock: TestClock) => Promise<void>) => void

const charges = { keep: '1h' } as const

/** Two limiters of one policy, as of two processes: each knows only its own verdicts. */
function twoLimiters(store: Store, limits: readonly Limit<string>[], name = freshKey()) {
  const make = () => createLimiter({ name, store, limits, charges })
  return [make(), make()] as const
}

async function consume(limiter: Limiter, key: string, cost: number | Record<string, number> = 1) {
  const verdict = await limiter.consume(key, { cost })
  assert.equal(verdict.allowed, true)
  return { verdict, id: idOf(verdict) }
}

function idOf({ id }: Verdict): string {
  if (id === undefined) throw new Error('expected an id of an admitted verdict')
  return id
}

/** Tests of charges that any process changes by their ids. On a store without them, that policies with `charges` are rejected. */
export function keptChargeTests(given: On, oneOfEach: Readonly<Record<string, Limit<string>>>): void {
  given('a store that keeps no charges rejects policies with charges', async (store) => {
    if (!store[KEPT_CHARGES]) assert.throws(() => createLimiter({ store, limit: 1, window: '1m', charges }), /charges/)
  })
  const on: On = (title, body) =>
    given(title, async (store, clock) => {
      if (store[KEPT_CHARGES]) await body(store, clock)
    })
  refundTests(on, oneOfEach)
  settleTests(on)
  meterTests(on)
  lifeTests(on)
  unknownTests(on)
  permitTests(on)
}

function refundTests(on: On, oneOfEach: Readonly<Record<string, Limit<string>>>): void {
  for (const [algorithm, limit] of Object.entries(oneOfEach)) {
    on(`another limiter refunds a charge by its id, once: ${algorithm}`, async (store) => {
      const [web, worker] = twoLimiters(store, [limit])
      const key = freshKey()
      const { remaining } = await web.peek(key)
      const { verdict, id } = await consume(web, key, 2)
      await consume(web, key)
      assert.equal(await worker.refund(id), 'done')
      assert.equal(await worker.refund(id), 'done before')
      assert.equal(await verdict.settle(0), false)
      assert.equal(await web.refund(key, verdict), false)
      assert.equal((await web.peek(key)).remaining, remaining - 1)
    })

    on(`a reset makes earlier ids unknown in every limiter: ${algorithm}`, async (store) => {
      const [web, worker] = twoLimiters(store, [limit])
      const [key, other] = [freshKey(), freshKey()]
      const { id } = await consume(web, key, 2)
      const beside = await consume(web, other)
      await worker.reset(key)
      const { id: later } = await consume(web, key, 2)
      const { remaining } = await web.peek(key)
      assert.equal(await web.refund(id), 'unknown')
      assert.equal((await web.peek(key)).remaining, remaining)
      assert.equal(await web.refund(beside.id), 'done')
      assert.equal(await web.refund(later), 'done')
      assert.equal((await web.peek(key)).resetAfterMs, 0)
    })
  }

  on('a verdict and its id are one charge: the first of them counts', async (store) => {
    const [web, worker] = twoLimiters(store, [perMinute(9)])
    const key = freshKey()
    const { verdict, id } = await consume(web, key, 5)
    assert.equal(await verdict.settle(2), true)
    assert.equal(await worker.settle(id, 1), 'done before')
    assert.equal((await web.peek(key)).remaining, 7)
  })

  on('a refusal, a peek and a verdict of a policy without charges have no id', async (store) => {
    const [web] = twoLimiters(store, [perMinute(1)])
    const key = freshKey()
    assert.equal((await web.peek(key)).id, undefined)
    await consume(web, key)
    assert.equal((await web.consume(key)).id, undefined)
    const plain = createLimiter({ name: freshKey(), store, limit: 1, window: '1m' })
    assert.equal((await plain.consume(key)).id, undefined)
    await assert.rejects(plain.refund('x'), { code: 'INVALID_POLICY' })
  })

  on('an id is in no copy and no JSON of a verdict', async (store) => {
    const [web] = twoLimiters(store, [perMinute(1)])
    const { verdict, id } = await consume(web, freshKey())
    assert.match(id, /^[\w-]{22,}$/)
    assert.equal(JSON.stringify([verdict, { ...verdict }, verdict.limits, verdict.units]).includes(id), false)
  })
}

const ofUnits = () => [
  perMinute(10),
  tokenBucket({ unit: 'tokens', capacity: 100, refill: 100, every: '1h' }),
  fixedWindow({ unit: 'tokens', limit: 200, window: '1h' }),
  fixedWindow({ unit: 'cents', limit: 50, window: '1h' }),
]

function settleTests(on: On): void {
  on('each unit of a charge is settled once, and a refund returns the others', async (store) => {
    const [web, worker] = twoLimiters(store, ofUnits())
    const key = freshKey()
    const { id } = await consume(web, key, { tokens: 40, cents: 5 })
    assert.equal(await worker.settle(id, { tokens: 25 }), 'done')
    assert.equal(await web.settle(id, { tokens: 0 }), 'done before')
    assert.equal(await web.settle(id, { tokens: 0, cents: 7 }), 'done')
    assert.equal(await web.refund(id), 'done')
    const { units } = await web.peek(key)
    assert.deepEqual(
      Object.entries(units).map(([unit, { remaining }]) => [unit, remaining]),
      [
        ['requests', 10],
        ['tokens', 75],
        ['cents', 43],
      ],
    )
  })

  on('more units than were charged are charged whatever room there is', async (store) => {
    const [web, worker] = twoLimiters(store, ofUnits())
    const key = freshKey()
    const { id } = await consume(web, key, { tokens: 40 })
    assert.equal(await worker.settle(id, { tokens: 140, cents: 3 }), 'done')
    assert.equal(await worker.settle(id, { tokens: 140, cents: 3 }), 'done before')
    const { limits: reports } = await web.peek(key)
    assert.deepEqual(
      reports.map(({ remaining }) => remaining),
      [9, 0, 60, 47],
    )
  })

  on(
    'units that no limit counts, and more requests than were charged, are errors that change nothing',
    async (store) => {
      const [web] = twoLimiters(store, ofUnits())
      const key = freshKey()
      const { id } = await consume(web, key, { tokens: 4 })
      for (const actual of [{ watts: 1 }, { tokens: -1 }, { tokens: 1.5 }, 2, -1, Number.NaN, { requests: '1' }]) {
        await assert.rejects(web.settle(id, actual as number), { code: 'INVALID_COST' })
      }
      assert.equal(await web.settle(id, { tokens: 1 }), 'done')
    },
  )
}

function meterTests(on: On): void {
  on('a meter settles its unit of a charge when it ends', async (store) => {
    const [web, worker] = twoLimiters(store, ofUnits())
    const key = freshKey()
    for (const used of [4, 10, 30]) {
      const { verdict, id } = await consume(web, key, { tokens: 10 })
      const before = (await web.peek(key)).units.tokens?.remaining ?? 0
      const meter = verdict.meter('tokens', { step: 5 })
      await meter.add(used)
      await meter.end()
      assert.equal(await worker.settle(id, { tokens: 0 }), 'done before')
      assert.equal((await web.peek(key)).units.tokens?.remaining, before + 10 - used)
    }
  })

  on('a settlement by an id counts, and a meter that ends later settles nothing again', async (store) => {
    const [web, worker] = twoLimiters(store, ofUnits())
    const laters = [
      async (_verdict: Verdict, end: () => Promise<void>) => end(),
      async (verdict: Verdict) => assert.equal(await verdict.settle({ tokens: 60 }), false),
      async (verdict: Verdict) => assert.equal(await verdict.settle({ tokens: 1 }), false),
    ]
    for (const later of laters) {
      const key = freshKey()
      const { verdict, id } = await consume(web, key, { tokens: 10 })
      const meter = verdict.meter('tokens', { step: 5 })
      await meter.add(17)
      await meter.add(3)
      assert.equal(await worker.settle(id, { tokens: 30 }), 'done')
      await later(verdict, () => meter.end())
      // The steps are charges of their own: 7 units of one.
      assert.equal((await web.peek(key)).units.tokens?.remaining, 63)
    }
  })
}

function unknownTests(on: On): void {
  on('an id is known for `keep`, and a charge that is never settled stays as it was made', async (store, clock) => {
    const [web, worker] = twoLimiters(store, [fixedWindow({ limit: 10, window: '1d' })])
    const key = freshKey()
    const [one, other] = [await consume(web, key, 3), await consume(web, key, 3)]
    clock.advance(3_599_999)
    assert.equal(await worker.refund(one.id), 'done')
    clock.advance(1)
    assert.equal(await worker.refund(one.id), 'unknown')
    assert.equal(await worker.refund(other.id), 'unknown')
    assert.equal((await web.peek(key)).remaining, 7)
  })

  on('guessed, changed and truncated ids, and those of other policies and stores, are unknown', async (store) => {
    const limits = [perMinute(10)]
    const [web] = twoLimiters(store, limits)
    const [elsewhere] = twoLimiters(store, limits)
    const [foreign] = twoLimiters(memoryStore(), limits)
    const key = freshKey()
    const { id } = await consume(web, key, 3)
    const { id: ofOther } = await consume(foreign, key)
    const flipped = (id.startsWith('A') ? 'B' : 'A') + id.slice(1)
    const wrong = [
      ofOther,
      flipped,
      id.slice(0, -1),
      id.slice(0, 22),
      `${id}000`,
      `${id}AAA`,
      `${id}\n`,
      ` ${id}`,
      '',
      '__proto__',
      '{}*',
      'x'.repeat(10_000),
    ]
    for (const wrongId of wrong.filter((each) => each !== id)) {
      assert.equal(await web.refund(wrongId), 'unknown', JSON.stringify(wrongId))
      assert.equal(await web.settle(wrongId, 0), 'unknown')
      assert.equal(await web.release(wrongId), 'unknown')
      assert.equal(await web.renew(wrongId), 'unknown')
    }
    assert.equal(await elsewhere.refund(id), 'unknown')
    assert.equal((await web.peek(key)).remaining, 7)
    assert.equal(await web.refund(id), 'done')
  })

  on('forgetting an identity makes the ids of its charges unknown', async (store) => {
    if (!store.forget) return
    const [web] = twoLimiters(store, [perMinute(10)])
    const key = freshKey()
    const { id } = await consume(web, key, 3)
    await store.forget({ key })
    await consume(web, key)
    assert.equal(await web.refund(id), 'unknown')
    assert.equal((await web.peek(key)).remaining, 9)
  })
}

function lifeTests(on: On): void {
  on('a change that has nothing to change says whether the id is known', async (store, clock) => {
    const [web, worker] = twoLimiters(store, [perMinute(10)])
    const key = freshKey()
    const { id } = await consume(web, key, 3)
    const all = async () => [await worker.release(id), await worker.settle(id, {}), await worker.renew(id)]
    assert.deepEqual(await all(), ['done before', 'done before', 'done'])
    const { id: other } = await consume(web, freshKey())
    clock.advance('1h')
    assert.deepEqual(await all(), ['unknown', 'unknown', 'unknown'])
    assert.equal(await worker.release(other), 'unknown')
    const { id: later } = await consume(web, key)
    await worker.reset(key)
    assert.equal(await worker.release(later), 'unknown')
    assert.equal(await worker.settle(later, {}), 'unknown')
    assert.equal(await worker.renew(later), 'unknown')
  })

  on('a renewal makes an id valid for another `keep`, also where no permit is held', async (store, clock) => {
    const tokens = fixedWindow({ unit: 'tokens', limit: 100, window: '1d' })
    for (const limits of [[tokens], [tokens, concurrency({ limit: 2, ttl: '2h' })]]) {
      const [web, worker] = twoLimiters(store, limits)
      const key = freshKey()
      const { id } = await consume(web, key, { tokens: 50 })
      await worker.release(id)
      clock.advance('50m')
      assert.equal(await worker.renew(id), limits.length === 1 ? 'done' : 'done before')
      clock.advance('50m')
      assert.equal(await worker.settle(id, { tokens: 1 }), 'done')
      assert.equal((await web.peek(key)).units.tokens?.remaining, 99)
    }
  })
}

function permitTests(on: On): void {
  const limits = [perMinute(10), concurrency({ limit: 2, ttl: '10s' })]
  const left = async (limiter: Limiter, key: string) => (await limiter.peek(key)).limits.map((limit) => limit.remaining)

  on('another limiter renews and releases permits by the id, and other units stay', async (store, clock) => {
    const [web, worker] = twoLimiters(store, limits)
    const key = freshKey()
    const { verdict, id } = await consume(web, key)
    await consume(web, key)
    clock.advance('9s')
    assert.equal(await worker.renew(id), 'done')
    clock.advance('9s')
    assert.deepEqual(await left(web, key), [8, 1])
    assert.equal(await worker.release(id), 'done')
    assert.equal(await worker.release(id), 'done before')
    assert.equal(await worker.renew(id), 'done before')
    await web.release(verdict)
    assert.deepEqual(await left(web, key), [8, 2])
    assert.equal(await worker.refund(id), 'done')
    assert.deepEqual(await left(web, key), [9, 2])
  })

  on('permits that have expired are not renewed', async (store, clock) => {
    const [web, worker] = twoLimiters(store, limits)
    const key = freshKey()
    const { id } = await consume(web, key)
    clock.advance('10s')
    assert.equal(await worker.renew(id), 'unknown')
    assert.deepEqual(await left(web, key), [9, 2])
  })

  on('an id is known for as long as its permits are renewed, and for `keep` after that', async (store, clock) => {
    const [web, worker] = twoLimiters(store, [concurrency({ limit: 2, ttl: '50m' })])
    const key = freshKey()
    const { id } = await consume(web, key)
    for (let n = 0; n < 4; n++) {
      clock.advance('45m')
      assert.equal(await worker.renew(id), 'done')
    }
    assert.equal((await web.peek(key)).remaining, 1)
    assert.equal(await worker.release(id), 'done')
    clock.advance('1h')
    assert.equal(await worker.release(id), 'unknown')
  })
}
