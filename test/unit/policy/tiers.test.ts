import { createLimiter, everyone, fixedWindow, gcra, type Limit, memoryStore, perMinute } from '@sluice/core'
import { describe, expect, test } from 'vitest'

interface User {
  readonly id: string
  readonly plan: string
}

const user = (id: string, plan: string): User => ({ id, plan })
const byId = ({ id }: User) => id
const all = everyone<User>()

describe('tiers', () => {
  const limiterOf = (tiers: Record<string, Limit<User>[]>, priority?: Record<string, number>) =>
    createLimiter<User>({
      name: 'api',
      store: memoryStore({ clock: () => 0 }),
      key: byId,
      tiers,
      tier: ({ plan }) => plan,
      ...(priority && { priority }),
    })

  test('equal limits of two tiers share nothing', async () => {
    const limiter = limiterOf({ free: [perMinute(2)], trial: [perMinute(2)] })
    await limiter.consume(user('ann', 'free'))
    expect((await limiter.consume(user('ann', 'trial'))).remaining).toBe(1)
    expect((await limiter.consume(user('ann', 'free'))).remaining).toBe(0)
  })

  test.each([
    ['an exact log', perMinute<User>(5, { key: all })],
    ['a bucket', gcra<User>({ limit: 5, window: '1m', key: all })],
    ['a window', fixedWindow<User>({ limit: 5, window: '1m', key: all })],
  ])('%s that is the same object in several tiers is one shared limit', async (_what, shared) => {
    const own = { ...shared, key: byId }
    const limiter = limiterOf({ free: [perMinute(9), own, shared], pro: [shared, perMinute(9), own] })
    // The key equals that of `everyone()`.
    await limiter.consume(user('everyone', 'free'), { cost: 2 })
    const verdict = await limiter.consume(user('everyone', 'pro'))
    expect(verdict.limits.map(({ remaining }) => remaining)).toEqual([2, 8, verdict.limits[2]?.remaining])
    const other = await limiter.consume(user('bob', 'free'))
    expect(other.limits.map(({ remaining }) => remaining)).toEqual([8, 4, 1])
  })

  test('a verdict has its tier and its priority', async () => {
    const limiter = limiterOf({ free: [perMinute(2)], pro: [perMinute(2)] }, { pro: 7 })
    const [free, pro] = [await limiter.consume(user('a', 'free')), await limiter.consume(user('a', 'pro'))]
    expect([free.tier, free.priority, pro.tier, pro.priority]).toEqual(['free', 0, 'pro', 7])
  })

  test('refunds, resets and blocks find the tier of a request', async () => {
    const limiter = limiterOf({ free: [perMinute(2)], pro: [perMinute(9)] })
    const [free, pro] = [user('ann', 'free'), user('ann', 'pro')]
    const verdict = await limiter.consume(free)
    await limiter.consume(pro)
    expect(await limiter.refund(free, verdict)).toBe(true)
    expect((await limiter.peek(free)).remaining).toBe(2)
    await limiter.reset(pro)
    expect((await limiter.peek(pro)).remaining).toBe(9)
    await limiter.block('ann', { for: '1h' })
    expect([(await limiter.peek(free)).reason, (await limiter.peek(pro)).reason]).toEqual(['blocked', 'blocked'])
  })

  test('a reset of a key applies to every tier', async () => {
    let tier = 'free'
    const limiter = createLimiter({ tiers: { free: [perMinute(2)], pro: [perMinute(9)] }, tier: () => tier })
    await limiter.consume('ann', { cost: 2 })
    tier = 'pro'
    await limiter.reset('ann')
    tier = 'free'
    expect((await limiter.peek('ann')).remaining).toBe(2)
  })

  test.each(['gold', '', 'constructor', undefined, null, 5, Promise.resolve('gold')])(
    'a tier of %s is rejected with the names of all tiers',
    async (plan) => {
      const limiter = limiterOf({ free: [perMinute(2)], pro: [perMinute(9)] })
      await expect(limiter.consume(user('ann', plan as never))).rejects.toMatchObject({
        code: 'INVALID_POLICY',
        message: expect.stringMatching(/^policy "api": tier: expected "free" or "pro", got /),
      })
    },
  )
})

describe('reserve', () => {
  const clock = { now: 0 }
  const limiterOf = (reserve: unknown, limit = 10) =>
    createLimiter({
      store: memoryStore({ clock: () => clock.now }),
      limits: [gcra({ limit, window: '10s', reserve: reserve as number })],
    })

  test.each([
    [0.2, 10, 2],
    [0.25, 10, 3],
    [0.1, 30, 3],
    [3, 10, 3],
    [0, 10, 0],
    [{ 1: 0.1, 2: 2 }, 10, 3],
    [{ '-1': 4, 1: 2 }, 10, 2],
  ])('a reserve of %j of %i keeps %i units from requests without priority', async (reserve, limit, reserved) => {
    const limiter = limiterOf(reserve, limit)
    expect((await limiter.peek('key')).remaining).toBe(limit - reserved)
    expect((await limiter.peek('key', { priority: 9 })).remaining).toBe(limit)
    expect((await limiter.consume('key', { cost: limit - reserved })).allowed).toBe(true)
    expect((await limiter.consume('key', { cost: 1 })).allowed).toBe(false)
  })

  test('a cost that would need the reserve is impossible', async () => {
    const refusal = await limiterOf(0.5).consume('key', { cost: 6 })
    expect(refusal).toMatchObject({ allowed: false, reason: 'impossible', retryAfterMs: undefined, remaining: 5 })
    expect((await limiterOf(0.5).consume('key', { cost: 6, priority: 1 })).allowed).toBe(true)
  })

  test('a priority that is not a number is rejected', async () => {
    await expect(limiterOf(0.5).consume('key', { priority: Number.NaN })).rejects.toMatchObject({
      code: 'INVALID_POLICY',
    })
  })

  test.each([
    [10, /reserve: expected less than the 10 units that the limit holds, got 10/],
    [1.5, /reserve: expected a share from 0 to below 1, or whole units, got 1.5/],
    [-1, /reserve: expected a share/],
    [
      'half',
      /reserve: expected a share such as 0.2, whole units, or either by priority such as { 1: 0.2 }, got "half"/,
    ],
    [{ high: 0.5 }, /reserve: expected priorities that are numbers, got "high"/],
    [{ 1: 'half' }, /reserve\[1\]: expected a share/],
    [null, /reserve: expected/],
    [[0.5], /reserve: expected/],
    [{ 1: 0.5, 2: 0.5 }, /less than the 10 units/],
  ])('reserve rejects %j', (reserve, message) => {
    expect(() => limiterOf(reserve)).toThrow(
      expect.objectContaining({ code: 'INVALID_POLICY', message: expect.stringMatching(message) }),
    )
  })
})
