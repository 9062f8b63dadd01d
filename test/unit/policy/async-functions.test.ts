import {
  byHeader,
  compose,
  concurrency,
  createLimiter,
  everyone,
  fixedWindow,
  gcra,
  keyed,
  memoryStore,
  perMinute,
  type Verdict,
} from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { describe, expect, test } from 'vitest'
import { contextOf } from '../../support/context.js'

interface User {
  readonly id: string
  readonly plan: string
}
const ann: User = { id: 'ann', plan: 'pro' }
const bob: User = { id: 'bob', plan: 'free' }
const frozen = () => memoryStore({ clock: () => 0 })

describe('asynchronous functions without HTTP', () => {
  test('key, limit and window may return promises', async () => {
    const limiter = createLimiter<User>({
      store: frozen(),
      key: async ({ id }) => id,
      limit: async ({ plan }) => (plan === 'pro' ? 2 : 1),
      window: async ({ plan }) => (plan === 'pro' ? '1h' : '1m'),
    })
    const verdict = await limiter.consume(ann)
    expect(verdict.limits[0]).toMatchObject({ limit: 2, windowMs: 3_600_000, remaining: 1 })
    expect((await limiter.consume(bob)).limits[0]).toMatchObject({ limit: 1, windowMs: 60_000, remaining: 0 })
    expect((await limiter.consume(bob)).allowed).toBe(false)
    expect(await limiter.refund(ann, verdict)).toBe(true)
    expect((await limiter.peek(ann)).remaining).toBe(2)
    await limiter.reset(bob)
    expect((await limiter.acquire(bob)).allowed).toBe(true)
    await expect(limiter.refund(bob, verdict)).resolves.toBe(false)
    await expect(limiter.refund(bob, await limiter.consume(ann))).rejects.toMatchObject({ code: 'INVALID_KEY' })
  })

  test('tier and priority may return promises', async () => {
    const own = gcra({ limit: 2, window: '1h', reserve: 1 })
    const limiter = createLimiter<User>({
      store: frozen(),
      key: ({ id }) => id,
      tiers: { free: [own], pro: [own, perMinute(9, { name: 'pro' })] },
      tier: async ({ plan }) => plan,
      priority: async ({ plan }) => (plan === 'pro' ? 1 : 0),
    })
    expect(await limiter.consume(ann)).toMatchObject({ allowed: true, tier: 'pro', priority: 1 })
    expect([await limiter.consume(bob), await limiter.consume(bob)].map(({ allowed }) => allowed)).toEqual([
      true,
      false,
    ])
    await limiter.reset(ann)
    await expect(limiter.consume({ id: 'x', plan: 'gold' })).rejects.toMatchObject({ code: 'INVALID_POLICY' })
  })

  test('a promise passed as the key is rejected, as a forgotten await', async () => {
    const limiter = createLimiter({ limit: 1, window: '1m' })
    await expect(limiter.consume(Promise.resolve('ann') as never)).rejects.toMatchObject({ code: 'INVALID_KEY' })
  })
})

describe('asynchronous functions of a request', () => {
  const headers = (user: string) => contextOf({ ip: '192.0.2.7', headers: { 'x-user': user, 'x-org': 'acme' } })

  test('a guard returns no promise if no function returned one', () => {
    const guard = createGuard<unknown>({
      limits: [fixedWindow({ limit: () => 5, window: () => '1m' }), perMinute(9, { key: everyone() })],
      key: compose(byHeader('x-user'), byHeader('x-org')),
    })
    expect(guard(headers('ann'))).not.toBeInstanceOf(Promise)
  })

  test('the parts of a composed key are called at once, and joined in their order', async () => {
    const called: string[] = []
    const part = (name: string) =>
      keyed<unknown>(name, async () => {
        called.push(name)
        await new Promise(setImmediate)
        return name
      })
    const store = frozen()
    const late = createGuard<unknown>({ store, limit: 5, window: '1m', key: compose(part('a'), part('b')) })
    const outcome = late(headers('ann'))
    expect(called).toEqual(['a', 'b'])
    const { verdict } = await outcome
    expect((verdict as Verdict).keys).toEqual([{ kind: 'a+b', value: ['a', 'b'] }])
  })

  test.each([
    ['error', 400, undefined],
    ['skip', undefined, undefined],
    ['by-ip', undefined, 'anonymous'],
  ] as const)('a promised key that is missing is treated by anonymous: %s', async (anonymous, status, kind) => {
    for (const key of [
      async () => undefined,
      compose<unknown>(
        keyed('late', async () => 'x'),
        keyed('missing', () => ''),
      ),
    ]) {
      const guard = createGuard<unknown>({ limit: 5, window: '1m', key, anonymous })
      const { reply, verdict } = await guard(headers('ann'))
      expect([reply?.status, verdict?.keys[0]?.kind]).toEqual([status, kind])
    }
  })

  test('requests with a promised key are limited by it', async () => {
    const guard = createGuard<unknown>({
      name: 'busy',
      limits: [concurrency({ limit: 1 })],
      key: async (_request, context) => context.header('x-user'),
    })
    const first = await guard(headers('ann'))
    expect((await guard(headers('ann'))).reply?.status).toBe(429)
    expect((await guard(headers('bob'))).proceed).toBe(true)
    await guard.limiter.release(first.verdict)
    expect((await guard(headers('ann'))).proceed).toBe(true)
  })

  test('limits by outcome decide at once in memory, with a promised key, too', async () => {
    const guard = createGuard<unknown>({
      limit: 0,
      window: '1m',
      key: async () => 'k',
      count: { only: 'failure', within: '1h' },
    })
    const one = createGuard<unknown>({
      store: frozen(),
      limit: 1,
      window: '1h',
      key: async () => 'k',
      count: { only: 'failure' },
    })
    expect((await guard(headers('ann'))).reply?.status).toBe(429)
    await one.limiter.consume('k')
    const startedAt = performance.now()
    expect((await one(headers('ann'))).reply?.status).toBe(429)
    expect(performance.now() - startedAt).toBeLessThan(1000)
  })
})
