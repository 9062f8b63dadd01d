import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { byHeader, byIp, everyone, type HttpContext, ipRanges } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import * as expressAdapter from '@sluice/express'
import * as fastifyAdapter from '@sluice/fastify'
import * as koaAdapter from '@sluice/koa'
import express from 'express'
import express4 from 'express4'
import fastify from 'fastify'
import Koa from 'koa'
import request from 'supertest'
import { describe, expect, test } from 'vitest'
import { contextOf } from '../support/context.js'
import { warningsDuring } from '../support/process-events.js'
import { invalidContract } from './invalid.contract.js'
import { type AnyOptions, run } from './support/app.js'
import { appsByEffort } from './support/by-effort.js'
import { FRAMEWORKS } from './support/frameworks.js'

for (const [name, factory] of Object.entries(FRAMEWORKS)) invalidContract(name, factory)

describe.each(Object.entries(FRAMEWORKS))('%s with a trusted proxy', (_name, factory) => {
  test.each([
    ['byIp', { key: byIp() }],
    ['a deny list', { key: everyone(), deny: ipRanges(['192.0.2.0/24']) }],
  ])('%s responds with 400 to more addresses in X-Forwarded-For than are read', async (_what, options) => {
    const limiters = [{ limit: 5, window: '1m', ...options } as AnyOptions]
    const app = await run(factory, { trustProxy: true, routes: { '/': { limiters } } })
    try {
      const statusOf = async (chain: string) =>
        (await request(app.server).get('/').set('x-forwarded-for', chain)).status
      expect(await statusOf(`${'127.0.0.1, '.repeat(63)}198.51.100.1`)).toBe(200)
      expect(await statusOf(`${'127.0.0.1, '.repeat(64)}198.51.100.1`)).toBe(400)
      expect(await statusOf(`1${' '.repeat(5000)}1`)).toBe(400)
      expect(app.ran).toHaveLength(1)
    } finally {
      await app.close()
    }
  })

  test('a long X-Forwarded-For is ignored without a trusted proxy', async () => {
    const app = await run(factory, { routes: { '/': { limiters: [{ limit: 5, window: '1m', key: byIp() }] } } })
    const chain = '127.0.0.1, '.repeat(100)
    expect((await request(app.server).get('/').set('x-forwarded-for', chain)).status).toBe(200)
    await app.close()
  })
})

type Listener = Parameters<typeof request>[0]

const expressApp = (make: typeof express) => async (options: AnyOptions) => {
  const app = make()
  // Keeps errors out of its log.
  app.set('env', 'test')
  app.use(expressAdapter.rateLimit(options as never))
  app.use((_req, res) => void res.send('done'))
  return app as Listener
}

/** Apps with nothing but a limiter, whose framework handles errors. */
const BARE: Readonly<Record<string, (options: AnyOptions) => Promise<Listener>>> = appsByEffort({
  'Express 5': expressApp(express),
  'Express 4': expressApp(express4),
  Koa: async (options) => {
    const app = new Koa()
    app.silent = true
    app.use(koaAdapter.rateLimit(options as never))
    return app.callback()
  },
  Fastify: async (options) => {
    const app = fastify()
    await app.register(fastifyAdapter.rateLimit, { global: false })
    app.get('/', { config: { rateLimit: options as never } }, async () => 'done')
    await app.ready()
    return app.server
  },
})

test.each(Object.entries(BARE))(
  '%s responds with 400 to a passed error without an error handler',
  async (_name, make) => {
    const key = byHeader<unknown>('x-api-key')
    const app = await make({ name: 'internal-policy', limit: 1, window: '1m', key, onInvalid: 'pass' })
    expect((await request(app).get('/')).status).toBe(400)
  },
)

// Express shows the stack unless NODE_ENV is production, and nothing then.
test.each(['Koa', 'Fastify'])('%s shows clients nothing about a mistake of the application', async (name) => {
  for (const bad of [{ limit: () => Number.NaN }, { limit: async () => Number.NaN }]) {
    const options = { name: 'internal-policy', limit: 1, window: '1m', key: () => 'k', ...(bad as object) } as const
    const response = await request(await (BARE[name] as (typeof BARE)[string])(options)).get('/')
    expect(response.status).toBe(500)
    expect(response.text).not.toMatch(/internal-policy|limit:|key:|promise/)
  }
})

test('in Fastify a route inherits onInvalid from the plugin', async () => {
  const app = fastify()
  await app.register(fastifyAdapter.rateLimit, { global: false, onInvalid: 'pass', key: byHeader('x-api-key') })
  app.get('/passed', { config: { rateLimit: { limit: 1, window: '1m' } } }, async () => 'ok')
  app.get('/own', { config: { rateLimit: { limit: 1, window: '1m', onInvalid: 'reject' } } }, async () => 'ok')
  expect((await app.inject('/passed')).json()).toEqual({
    statusCode: 400,
    code: 'INVALID_KEY',
    error: 'Bad Request',
    message: 'Bad Request',
  })
  expect((await app.inject('/own')).json()).toEqual({ type: 'about:blank', title: 'Bad Request', status: 400 })
})

test('methods with a limiter refuse invalid requests, too', async () => {
  const limited = expressAdapter.RateLimited({ limit: 1, window: '1m', key: byHeader('x-api-key') })
  class Items {
    list(_req: express.Request, res: express.Response, _next: express.NextFunction): unknown {
      return res.send('items')
    }
  }
  const list = { value: Items.prototype.list }
  limited(Items.prototype, 'list', list)
  Object.defineProperty(Items.prototype, 'list', list)
  const items = new Items()
  const app = express()
  app.get('/', (req, res, next) => void items.list(req, res, next))
  expect((await request(app).get('/')).status).toBe(400)
  expect((await request(app).get('/').set('x-api-key', 'a')).status).toBe(200)
})

test('a disconnected client has no address, and causes no error or warning', async () => {
  const app = express()
  const ran: string[] = []
  const errors: unknown[] = []
  let arrived = () => {}
  const here = new Promise<void>((resolve) => {
    arrived = resolve
  })
  app.use(async (req, _res, next) => {
    arrived()
    while (!req.socket.destroyed) await sleep(5)
    next()
  })
  app.use(expressAdapter.rateLimit({ limit: 1, window: '1m', key: byIp() }))
  const finished = new Promise<void>((resolve) => {
    app.use((_req, _res, next) => {
      ran.push('handler')
      next()
    })
    app.use(((error, _req, _res, _next) => void errors.push(error)) as express.ErrorRequestHandler)
    setTimeout(resolve, 200)
  })
  const server = app.listen(0, '127.0.0.1')
  try {
    await new Promise((resolve) => server.once('listening', resolve))
    const warnings = await warningsDuring(async () => {
      const socket = connect((server.address() as { port: number }).port, '127.0.0.1')
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      await here
      socket.destroy()
      await finished
    })
    expect([ran, errors, warnings]).toEqual([[], [], []])
  } finally {
    server.close()
  }
})

test('an open connection without an address is the application’s mistake', () => {
  const guard = createGuard<unknown>({ name: 'api', limit: 1, window: '1m' })
  expect(() => guard(contextOf())).toThrow(/^policy "api": byIp: expected the client's address, got undefined/)
})

test.each([[undefined], [async () => 1 as never], [() => 1]])(
  'a key that is %o is the application’s mistake, or a missing key',
  (key) => {
    const guard = createGuard<unknown>({ name: 'api', limit: 1, window: '1m', key: () => key as never })
    const context: HttpContext = contextOf()
    if (key) expect(() => guard(context)).toThrow(expect.objectContaining({ code: 'INVALID_KEY' }))
    else expect(guard(context)).toMatchObject({ proceed: false, reply: { status: 400 } })
  },
)

test.each(['deny', true, 400])('onInvalid rejects %o', (onInvalid) => {
  expect(() => createGuard({ limit: 1, window: '1m', onInvalid: onInvalid as never })).toThrow(/onInvalid: expected/)
})

test.each(['', ' Bearer', 'Bearer\r\nx: y', 5])('a challenge of %o is rejected', (challenge) => {
  expect(() => expressAdapter.byUser(() => 'ann', { challenge: challenge as never })).toThrow(/challenge: expected/)
})
