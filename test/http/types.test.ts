import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import { expect, expectTypeOf, test } from 'vitest'

declare global {
  namespace Express {
    /** What an application's sign-in adds. */
    interface Request {
      user?: { id: string }
    }
  }
}

test('functions of the request have the request of their framework', () => {
  express.rateLimit({
    limit: (req) => (req.get('x-tier') === 'pro' ? 100 : 10),
    window: (req) => (req.secure ? '1m' : 60_000),
    key: express.compose(express.byIp(), (req) => req.hostname),
    skip: (req, { path }) => req.ip === undefined || path === '/health',
    respond: express.reject({ body: (req, verdict) => ({ path: req.path, retryAfterMs: verdict.retryAfterMs }) }),
  })
  koa.rateLimit({
    limits: [koa.gcra({ limit: 1, window: '1s', key: koa.byUser((ctx) => ctx.state.user?.id as string | undefined) })],
    cost: (ctx) => Number(ctx.query.pages ?? 1),
    skip: async (ctx) => ctx.secure,
  })
  fastify.rateLimit satisfies (app: never, options: fastify.RateLimitPluginOptions, done: never) => void
  const options: fastify.FastifyRateLimitOptions = {
    limit: 1,
    window: '1s',
    key: (request) => request.hostname,
    cost: ({ routeOptions }) => (routeOptions.method === 'POST' ? 2 : 1),
  }
  expectTypeOf(options.limit).not.toBeAny()
})

test('what decides on charges and tiers is typed', () => {
  express.rateLimit({
    tiers: { free: [express.perMinute(10)], pro: [express.perMinute(100, { reserve: { 2: 0.1 } })] },
    tier: (req) => (req.get('x-plan') === 'pro' ? 'pro' : 'free'),
    priority: { pro: 1 },
    key: express.byUser((req) => {
      expectTypeOf(req.user).toEqualTypeOf<{ id: string } | undefined>()
      return req.user?.id
    }),
    anonymous: 'by-ip',
    count: (status, verdict) => {
      expectTypeOf(status).toBeNumber()
      expectTypeOf(verdict).toEqualTypeOf<express.Verdict>()
      return status === 401
    },
    maxWait: '2s',
  })
  fastify.byUser<import('fastify').FastifyRequest>((request) => request.id)
  expectTypeOf<express.Verdict['settle']>().toEqualTypeOf<(actualCost: number) => Promise<boolean>>()
})

test('the compiler refuses wrong options', () => {
  const refused = [
    // @ts-expect-error a misspelt option
    () => express.rateLimit({ limit: 1, windowMs: 1000 }),
    // @ts-expect-error a limit in words
    () => koa.rateLimit({ limit: 'one', window: '1s' }),
    // @ts-expect-error a status that refuses nothing
    () => express.rateLimit({ limit: 1, window: '1s', respond: express.reject({ status: 200 }) }),
    // @ts-expect-error no such form of headers
    () => express.rateLimit({ limit: 1, window: '1s', headers: 'draft-12' }),
    // @ts-expect-error a property that requests do not have
    () => express.rateLimit({ limit: 1, window: '1s', key: express.byUser((req) => req.account.id) }),
    // @ts-expect-error a promised key
    () => express.rateLimit({ limit: 1, window: '1s', key: async () => 'k' }),
    // @ts-expect-error an exact log would keep an entry per byte
    () => express.slidingLog({ limit: 1, window: '1s', unit: 'content-bytes' }),
    // @ts-expect-error places in flight are their own unit
    () => express.concurrency({ limit: 1, unit: 'content-bytes' }),
    // @ts-expect-error no such unit
    () => express.gcra({ limit: 1, window: '1s', unit: 'bytes' }),
    // @ts-expect-error a promised count
    () => express.rateLimit({ limit: 1, window: '1s', count: async () => true }),
    // @ts-expect-error a count of words
    () => koa.rateLimit({ limit: 1, window: '1s', count: (status: string) => status === 'ok' }),
    // @ts-expect-error no such way with strangers
    () => express.rateLimit({ limit: 1, window: '1s', anonymous: 'by-name' }),
    // @ts-expect-error a tier that is a number
    () => express.rateLimit({ tiers: { free: [express.perMinute(1)] }, tier: () => 1 }),
    // @ts-expect-error limits that are none
    () => express.rateLimit({ tiers: { free: [100] }, tier: () => 'free' }),
    // @ts-expect-error a priority in words
    () => express.rateLimit({ tiers: { free: [express.perMinute(1)] }, tier: () => 'free', priority: { free: 'low' } }),
    // @ts-expect-error a size in words
    () => express.rateLimit({ limit: 1, window: '1s', maxBodyBytes: '1mb' }),
    // @ts-expect-error a reserve in words
    () => express.perMinute(1, { reserve: 'half' }),
  ]
  expect(refused).toHaveLength(17)
})
