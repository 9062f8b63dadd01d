import {
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  type Limiter,
  memoryStore,
  redisStore,
  type Store,
  slidingLog,
  type Verdict,
} from '@sluice/core'
import { beforeEach, describe, expect, test } from 'vitest'
import { Clock } from '../contract/store-under-test.js'
import { redisForTests } from '../support/redis-for-tests.js'

// How budgets of tokens have failed elsewhere: each test names a thread of github.com/BerriAI/litellm, and shows that its case does
// not occur here.

const { server, client } = await redisForTests()
let clock: Clock
beforeEach(async () => {
  await server.flush()
  clock = new Clock()
})

const STORES: Record<string, () => Store> = {
  memory: () => memoryStore({ clock: clock.read }),
  Redis: () => redisStore(client, { clock: clock.read, timeout: 5000 }),
}
const LIMITS: Record<string, (limit: number) => Limit<string>> = {
  'a fixed window': (limit) => fixedWindow({ unit: 'tokens', limit, window: '1m', estimate: 'cap' }),
  'a log': (limit) => slidingLog({ unit: 'tokens', limit, window: '1m', estimate: 'cap' }),
  'a bucket': (limit) => gcra({ unit: 'tokens', limit, window: '1m', estimate: 'cap' }),
}
const cases = Object.entries(LIMITS).flatMap(([limit, limitOf]) =>
  Object.entries(STORES).map(([store, makeStore]) => ({ name: `${limit} in ${store}`, limitOf, makeStore })),
)
const costOf = ({ units }: Verdict) => units.tokens?.cost ?? 0
/** The tokens of a stream of that length that are sent before its meter ends it. */
async function sent(verdict: Verdict, length: number, step: number): Promise<number> {
  const meter = verdict.meter('tokens', { step })
  let tokens = 0
  while (tokens < length) {
    tokens++
    if (!(await meter.add(1))) break
  }
  await meter.end()
  return tokens
}

describe.each(cases)('$name', ({ limitOf, makeStore }) => {
  let limiter: Limiter<string>
  const start = (limit: number, more: readonly Limit<string>[] = []) => {
    const store = makeStore()
    limiter = createLimiter<string>({ name: 'chat', store, limits: [...more, limitOf(limit)] })
    return () => store.close()
  }
  const left = async () => (await limiter.peek('team', { cost: { tokens: 0 } })).units.tokens?.remaining

  // issues/18730: usage was added when a response was complete, so five requests at once passed a check of 100 tokens a minute, and
  // took 663.
  test('requests at once are never admitted for more than the budget', async () => {
    const close = start(100)
    const costs = [58, 80, 175, 175, 175, 42, 30]
    const verdicts = await Promise.all(costs.map((tokens) => limiter.consume('team', { cost: { tokens } })))
    const admitted = verdicts.filter(({ allowed }) => allowed).reduce((sum, verdict) => sum + costOf(verdict), 0)
    expect(admitted).toBeLessThanOrEqual(100)
    expect(await left()).toBe(100 - admitted)
    await close()
  })

  // pull/29193: without max_tokens, 1025 tokens were reserved. That was more than the smallest limit, so the first request was
  // refused, and each after it, with all tokens left.
  test('an estimate above the limit is charged as the limit, and the rest returns', async () => {
    const close = start(100)
    const first = await limiter.consume('team', { cost: { tokens: 1025 } })
    expect([first.allowed, costOf(first)]).toEqual([true, 100])
    const second = await limiter.consume('team', { cost: { tokens: 1025 } })
    expect(second).toMatchObject({ allowed: false, reason: 'limited', retryAfterMs: 60_000 })
    await first.settle({ tokens: 30 })
    expect(await left()).toBe(70)
    clock.now += second.retryAfterMs ?? 0
    expect((await limiter.consume('team', { cost: { tokens: 1025 } })).allowed).toBe(true)
    await close()
  })

  // pull/34223: a body with max_tokens of 1 beside max_completion_tokens was reserved by the smaller one: 738 tokens passed a limit
  // of 60.
  test('a stream is cut at the budget, however small its estimate', async () => {
    const close = start(60)
    const tokens = await sent(await limiter.consume('team', { cost: { tokens: 1 } }), 738, 8)
    // A step, and what comes while one is charged.
    expect(tokens).toBeLessThanOrEqual(60 + 2 * 8 + 1)
    expect(await left()).toBe(0)
    expect((await limiter.consume('team', { cost: { tokens: 1 } })).allowed).toBe(false)
    await close()
  })

  test('what a response took beyond its estimate refuses the next one, for two windows at most', async () => {
    const close = start(60)
    const verdict = await limiter.consume('team', { cost: { tokens: 1 } })
    expect(await verdict.settle({ tokens: 738 })).toBe(true)
    const refused = await limiter.consume('team', { cost: { tokens: 1 } })
    expect(refused.allowed).toBe(false)
    expect(refused.retryAfterMs).toBeLessThanOrEqual(120_000)
    clock.now += refused.retryAfterMs ?? 0
    expect((await limiter.consume('team', { cost: { tokens: 1 } })).allowed).toBe(true)
    await close()
  })

  // issues/34728: the usage of a response had other names than those that were read, counted as 0, and the whole reservation was
  // refunded.
  test('a response without usage keeps its estimate', async () => {
    const close = start(100)
    const verdict = await limiter.consume('team', { cost: { tokens: 70 } })
    const usage: { total_tokens?: number } = JSON.parse('{ "input_tokens": 50, "output_tokens": 900 }')
    await expect(verdict.settle({ tokens: usage.total_tokens as number })).rejects.toMatchObject({
      code: 'INVALID_COST',
    })
    expect(await left()).toBe(30)
    expect(await verdict.settle({})).toBe(false)
    expect(await left()).toBe(30)
    expect(await verdict.settle({ tokens: 950 })).toBe(true)
    expect((await limiter.consume('team', { cost: { tokens: 1 } })).allowed).toBe(false)
    await close()
  })

  // pull/36143: one estimate for all models let parallel requests of a talkative model overrun the limit, and throttled a terse one.
  test.each([
    ['too small an estimate', 10, 300],
    ['too large an estimate', 250, 20],
  ])('%s neither overruns nor wastes the budget', async (_what, estimate, length) => {
    const close = start(1000)
    let produced = 0
    for (let round = 0; round < 40; round++) {
      const streams = Array.from({ length: 8 }, async () => {
        const verdict = await limiter.consume('team', { cost: { tokens: estimate } })
        const tokens = verdict.allowed ? await sent(verdict, length, 16) : 0
        produced += tokens
      })
      await Promise.all(streams)
    }
    expect(produced).toBeGreaterThanOrEqual(1000 - estimate)
    expect(produced).toBeLessThanOrEqual(1000 + 8 * (2 * 16 + 1))
    await close()
  })

  // issues/18953: requests and tokens shared the start of a window, so a window of tokens kept the count of the one before. Keys
  // below their limit were refused, and for minutes.
  test('a key below its limits is never refused, and an exhausted one is served after a window', async () => {
    const perMinute = fixedWindow<string>({ limit: 500, window: '1m', anchor: 'first-request' })
    const close = start(186, [perMinute])
    // 31 tokens each 10 s are exactly the limit of any minute.
    for (let n = 0; n < 60; n++) {
      expect([n, (await limiter.consume('team', { cost: { tokens: 31 } })).allowed]).toEqual([n, true])
      clock.now += 10_000
    }
    while ((await limiter.consume('team', { cost: { tokens: 31 } })).allowed);
    let waited = 0
    for (; !(await limiter.consume('team', { cost: { tokens: 31 } })).allowed; waited += 1000) clock.now += 1000
    expect(waited).toBeLessThanOrEqual(60_000)
    await close()
  })
})
