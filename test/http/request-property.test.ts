import { createServer, type Server } from 'node:http'
import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import makeExpress from 'express'
import makeExpress4 from 'express4'
import makeFastify from 'fastify'
import Koa from 'koa'
import request from 'supertest'
import { describe, expect, test } from 'vitest'
import type { AnyOptions } from './support/app.js'

const { byIp, compose, everyone, keyed, memoryStore } = express

/** An app whose route `/` responds with the remaining units by name, behind one limiter per name. */
const APPS: Record<string, (limiters: readonly AnyOptions[], names: readonly string[]) => Promise<Server>> = {
  'Express 5': async (limiters, names) => expressApp(makeExpress, limiters, names),
  'Express 4': async (limiters, names) => expressApp(makeExpress4, limiters, names),
  Koa: async (limiters, names) => {
    const app = new Koa()
    for (const options of limiters) app.use(koa.rateLimit(options as never))
    app.use((ctx) => {
      ctx.body = remainingOf(ctx.state, names)
    })
    return createServer(app.callback())
  },
  Fastify: async (limiters, names) => {
    const app = makeFastify()
    await app.register(fastify.rateLimit, { global: false })
    const onRequest = limiters.map((options) => app.rateLimit(options as never))
    app.get('/', { onRequest }, async (request) => remainingOf(request, names))
    await app.ready()
    return app.server
  },
}

function expressApp(make: () => makeExpress.Express, limiters: readonly AnyOptions[], names: readonly string[]) {
  const app = make()
  app.get('/', ...limiters.map((options) => express.rateLimit(options as never)), (req, res) => {
    res.json(remainingOf(req, names))
  })
  return createServer(app)
}

function remainingOf(holder: object, names: readonly string[]) {
  return names.map((name) => (holder as Record<string, express.Verdict>)[name]?.remaining ?? null)
}

describe.each(Object.entries(APPS))('%s', (_name, start) => {
  test('each limiter puts its verdict at its requestProperty', async () => {
    const server = await start(
      [
        { name: 'a', limit: 5, window: '1m', requestProperty: 'perMinute' },
        { name: 'b', limit: 9, window: '1h', requestProperty: 'perHour' },
      ],
      ['perMinute', 'perHour', 'rateLimit'],
    )
    expect((await request(server).get('/')).body).toEqual([4, 8, null])
  })

  test('count receives the request and the response', async () => {
    const seen: unknown[] = []
    const limiter: AnyOptions = {
      store: memoryStore({ clock: () => 0 }),
      limit: 1,
      window: '1m',
      count: {
        only(status, { policy }, context) {
          const { request, response } = context
          seen.push([status, policy, typeof request, response.statusCode, context.getResponseHeader('ratelimit')])
          return context.header('x-free') !== 'yes'
        },
      },
    }
    const server = await start([limiter], ['rateLimit'])
    const status = async (free: string) => (await request(server).get('/').set('X-Free', free)).status
    expect([await status('yes'), await status('yes')]).toEqual([200, 200])
    await expect.poll(() => seen.length).toBe(2)
    expect(seen[0]).toEqual([200, 'default', 'object', 200, '"default";r=0;t=60'])
    expect([await status('no'), await status('no')]).toEqual([200, 429])
  })
})

test('requestProperty rejects names that requests already have', () => {
  for (const requestProperty of [
    'headers',
    'socket',
    'user',
    'ip',
    '__proto__',
    'constructor',
    'a b',
    '',
    'x'.repeat(65),
    7,
  ]) {
    const make = () => express.rateLimit({ limit: 1, window: '1m', requestProperty: requestProperty as string })
    expect(make).toThrow(/requestProperty: expected a name of 1 to 64 letters/)
  }
})

test('a verdict has its keys, also with a block, but not in its JSON', async () => {
  const key = compose(
    byIp(),
    keyed('account', () => 'ann'),
  )
  const { limiter } = express.rateLimit({ name: 'api', limit: 1, window: '1m', key })
  const identity = { 'ip+account': ['192.0.2.7', 'ann'] } as never
  const verdict = await limiter.consume(identity)
  expect(verdict.policy).toBe('api')
  expect(verdict.keys).toEqual([{ kind: 'ip+account', value: ['192.0.2.7', 'ann'] }])
  await limiter.block(identity, { for: '1m' })
  expect((await limiter.consume(identity)).keys).toEqual(verdict.keys)
  expect(JSON.stringify(verdict)).not.toContain('192.0.2.7')
  expect((await express.createLimiter({ limit: 1, window: '1m', key: everyone() }).peek('x')).keys).toEqual([
    { kind: 'everyone', value: 'everyone' },
  ])
})
