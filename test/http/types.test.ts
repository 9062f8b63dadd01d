import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import type { Request } from 'express'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import type { Context } from 'koa'
import { createClient, createClientPool, createCluster, createSentinel } from 'redis'
import { createClient as createClient5, createCluster as createCluster5 } from 'redis5'
import { expect, expectTypeOf, test } from 'vitest'

declare global {
  namespace Express {
    /** Added by an application's sign-in. */
    interface Request {
      user?: { id: string }
    }
  }
}

test('functions of the request have the request type of their framework', () => {
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
  fastify.rateLimit satisfies (
    app: never,
    options: fastify.RateLimitPluginOptions & fastify.LimitForm,
    done: never,
  ) => void
  const options: fastify.FastifyRateLimitOptions = {
    limit: 1,
    window: '1s',
    key: (request) => request.hostname,
    cost: ({ routeOptions }) => (routeOptions.method === 'POST' ? 2 : 1),
  }
  expectTypeOf(options.limit).not.toBeAny()
})

test('options about charges and tiers are typed', () => {
  express.rateLimit({
    tiers: { free: [express.perMinute(10)], pro: [express.perMinute(100, { reserve: { 2: 0.1 } })] },
    tier: (req) => (req.get('x-plan') === 'pro' ? 'pro' : 'free'),
    priority: { pro: 1 },
    key: express.byUser((req) => {
      expectTypeOf(req.user).toEqualTypeOf<{ id: string } | undefined>()
      return req.user?.id
    }),
    anonymous: 'by-ip',
    count: {
      only: (status, verdict, { request, response }) => {
        expectTypeOf(request).toEqualTypeOf<Request>()
        expectTypeOf(response.statusCode).toEqualTypeOf<number | undefined>()
        expectTypeOf(status).toBeNumber()
        expectTypeOf(verdict).toEqualTypeOf<express.Verdict>()
        return status === 401
      },
      within: '2s',
    },
  })
  fastify.byUser<import('fastify').FastifyRequest>((request) => request.id)
  expectTypeOf<express.Verdict['settle']>().toEqualTypeOf<(actual: number | express.Units) => Promise<boolean>>()
})

test('functions of the request may be async', () => {
  express.rateLimit({
    tiers: { free: [express.perMinute(10)], pro: [express.gcra({ limit: async () => 100, window: 60_000 })] },
    tier: async (req) => (req.get('x-plan') === 'pro' ? 'pro' : 'free'),
    priority: async (req) => (req.secure ? 1 : 0),
    key: express.compose(
      express.byIp(),
      express.byUser(async (req) => req.user?.id),
    ),
  })
  express.rateLimit({ limit: async () => 5, window: async (req) => (req.secure ? '1m' : 60_000) })
  koa.createLimiter<{ id: string }>({ limit: 1, window: '1m', key: async ({ id }) => id })
})

test('handlers of refused requests have the types of their framework', () => {
  const limits = { limit: 1, window: '1m' } as const
  express.rateLimit({
    ...limits,
    requestProperty: 'quota',
    headers: { format: 'legacy', names: { reset: false } },
    respond: express.handler((req, res, next, verdict) => {
      if (req.get('x-free')) return next()
      return res.status(420).json({ waitMs: verdict.retryAfterMs })
    }),
  })
  koa.rateLimit({
    ...limits,
    respond: koa.handler((ctx, next, { reason }) => (ctx.secure ? next() : ctx.throw(429, String(reason)))),
  })
  const options: fastify.FastifyRateLimitOptions = {
    ...limits,
    respond: fastify.handler(async (request, reply, verdict) => {
      reply.code(420)
      return { id: request.id, keys: verdict.keys }
    }),
  }
  expectTypeOf(options.respond).not.toBeAny()
  express.rateLimit({
    ...limits,
    respond: express.queue({ otherwise: express.pass(), ageEvery: Number.POSITIVE_INFINITY }),
  })
  expectTypeOf<express.RateLimitError['verdict']>().toEqualTypeOf<express.Verdict>()
  express.createLimiter<{ id: string }>({
    ...limits,
    key: ({ id }) => id,
    onVerdict: (request, verdict) => expectTypeOf([request.id, verdict.keys]).not.toBeAny(),
  })
})

test('the compiler rejects wrong options', () => {
  const refused = [
    // @ts-expect-error a factory without its call
    () => express.rateLimit({ limit: 1, window: '1s', key: express.byIp }),
    // @ts-expect-error a factory of responders without its call
    () => express.rateLimit({ limit: 1, window: '1s', respond: express.pass }),
    // @ts-expect-error a handler of another framework
    () => express.rateLimit({ limit: 1, window: '1s', respond: koa.handler((ctx) => void ctx.status) }),
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
    // @ts-expect-error a promise of what is no key
    () => express.rateLimit({ limit: 1, window: '1s', key: async () => ({ id: 'k' }) }),
    // @ts-expect-error a promised limit in words
    () => express.rateLimit({ limit: async () => 'one', window: '1s' }),
    // @ts-expect-error permits are their own unit
    () => express.concurrency({ limit: 1, unit: 'content-bytes' }),
    // @ts-expect-error a unit of a wrong kind
    () => express.gcra({ limit: 1, window: '1s', unit: 1 }),
    // @ts-expect-error a cost in words
    () => express.rateLimit({ limit: 1, window: '1s', cost: { tokens: 'many' } }),
    // @ts-expect-error a promised count
    () => express.rateLimit({ limit: 1, window: '1s', count: async () => true }),
    // @ts-expect-error a count of words
    () => koa.rateLimit({ limit: 1, window: '1s', count: { only: (status: string) => status === 'ok' } }),
    // @ts-expect-error an unknown value of anonymous
    () => express.rateLimit({ limit: 1, window: '1s', anonymous: 'by-name' }),
    // @ts-expect-error a tier that is a number
    () => express.rateLimit({ tiers: { free: [express.perMinute(1)] }, tier: () => 1 }),
    // @ts-expect-error numbers in place of limits
    () => express.rateLimit({ tiers: { free: [100] }, tier: () => 'free' }),
    // @ts-expect-error a priority in words
    () => express.rateLimit({ tiers: { free: [express.perMinute(1)] }, tier: () => 'free', priority: { free: 'low' } }),
    // @ts-expect-error a size in words
    () => express.rateLimit({ limit: 1, window: '1s', body: { max: '1mb' } }),
    // @ts-expect-error a reserve in words
    () => express.perMinute(1, { reserve: 'half' }),
    // @ts-expect-error a duration in words
    () => express.rateLimit({ limit: 1, window: '1 minute' }),
    // @ts-expect-error a number without a unit
    () => express.createLimiter({ limit: 1, window: '60' }),
    // @ts-expect-error a duration in words that a function returns
    () => koa.rateLimit({ limit: 1, window: () => '1 hour' }),
    // @ts-expect-error no window
    () => express.rateLimit({ limit: 100 }),
    // @ts-expect-error no limit
    () => koa.rateLimit({ window: '1m' }),
    // @ts-expect-error nothing at all
    () => express.createLimiter({ name: 'api' }),
    // @ts-expect-error several limits beside one
    () => express.rateLimit({ limit: 1, window: '1m', limits: [express.perMinute(1)] }),
    // @ts-expect-error tiers beside limits
    () => koa.rateLimit({ limits: [koa.perMinute(1)], tiers: { free: [koa.perMinute(1)] }, tier: () => 'free' }),
    // @ts-expect-error a tier without tiers
    () => express.rateLimit({ limit: 1, window: '1m', tier: () => 'free' }),
    // @ts-expect-error tiers without what names one
    () => express.rateLimit({ tiers: { free: [express.perMinute(1)] } }),
    // @ts-expect-error a decorator without limits
    () => koa.RateLimited({ name: 'api' }),
  ]
  for (const make of refused) expect(make).toBeTypeOf('function')
})

test('options of Fastify are rejected by the compiler where the program rejects them', () => {
  const plain = (app: FastifyInstance) =>
    app.get('/', { config: { rateLimit: { limit: 5, window: '1m' } } }, () => 'ok')
  const partial = (app: FastifyInstance) =>
    app.get('/', { config: { rateLimit: { enforce: { mode: 'report' } } } }, () => 'ok')
  const none = (app: FastifyInstance) => app.get('/', { config: { rateLimit: false } }, () => 'ok')
  const lenient = (app: FastifyInstance) =>
    app.register(fastify.rateLimit, { global: false, unavailable: { decide: 'deny' } })
  const refused = [
    // @ts-expect-error a misspelt option of a route
    (app: FastifyInstance) => app.get('/', { config: { rateLimit: { limt: 5 } } }, () => 'ok'),
    // @ts-expect-error a misspelt option of the plugin
    (app: FastifyInstance) => app.register(fastify.rateLimit, { limt: 5, window: '1m' }),
    // @ts-expect-error no window
    (app: FastifyInstance) => app.register(fastify.rateLimit, { limit: 5 }),
    // @ts-expect-error a limiter of a route without limits
    (app: FastifyInstance) => app.rateLimit({ name: 'login' }),
  ]
  for (const make of [plain, partial, none, lenient, ...refused]) expect(make).toBeTypeOf('function')
})

test('verdicts are typed where handlers find them', () => {
  expectTypeOf<Request['rateLimit']>().toEqualTypeOf<express.Verdict | undefined>()
  expectTypeOf<Context['state']['rateLimit']>().toEqualTypeOf<koa.Verdict | undefined>()
  expectTypeOf<FastifyRequest['rateLimit']>().toEqualTypeOf<fastify.Verdict | undefined>()
})

test('options can be extended and passed on', () => {
  interface PluginOptions extends express.ExpressRateLimitOptions {
    readonly plugin?: string
  }
  const own = ({ plugin, ...options }: PluginOptions & express.LimitForm) =>
    express.rateLimit({ ...(options as PluginOptions & express.LimitForm), name: plugin })
  expect(own({ limit: 1, window: '1m', plugin: 'mine' }).limiter).toBeInstanceOf(express.Limiter)
})

test('redisStore accepts each supported client, and nothing else', () => {
  const clients = () => {
    express.redisStore(new Redis<'legacy'>())
    express.redisStore(new Redis5())
    express.redisStore(new Cluster<'legacy'>([]))
    express.redisStore(new Cluster5([]))
    express.redisStore(createClient())
    express.redisStore(createClient5())
    express.redisStore(createClient({ RESP: 3, modules: {} }))
    express.redisStore(createCluster({ rootNodes: [] }))
    express.redisStore(createCluster5({ rootNodes: [] }))
    const untyped = JSON.parse('{}')
    express.redisStore(untyped)
    // @ts-expect-error an address is no client
    express.redisStore('redis://localhost')
    // @ts-expect-error
    express.redisStore(new URL('redis://localhost'))
    // @ts-expect-error
    express.redisStore(6379)
    // @ts-expect-error options are no client
    express.redisStore({ host: 'localhost', port: 6379 })
    // @ts-expect-error a promise is no client
    express.redisStore(createClient().connect())
    // @ts-expect-error
    express.redisStore(undefined)
    // @ts-expect-error the class itself is no client
    express.redisStore(Redis)
    // @ts-expect-error Sentinel is supported through ioredis only
    express.redisStore(createSentinel({ name: 'main', sentinelRootNodes: [] }))
    // @ts-expect-error pools are not supported
    express.redisStore(createClientPool())
  }
  expectTypeOf(clients).toBeFunction()
})
