import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import {
  concurrency,
  degrade,
  everyone,
  fixedWindow,
  memoryStore,
  pass,
  queue,
  RateLimitError,
  SluiceError,
  tarpit,
} from '@sluice/core'
import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import makeExpress from 'express'
import makeFastify from 'fastify'
import Koa from 'koa'
import request from 'supertest'
import { describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { NATIVE, type NativeFramework } from './support/native-apps.js'

const closing = closedAfterEach()

const frozen = () => memoryStore({ clock: () => 0 })
const none = { limit: 0, window: '10s', name: 'api' } as const
/** A store that was never available. */
const away = {
  decide: async () => Promise.reject(new SluiceError('STORE_UNAVAILABLE', 'away')),
  reset: async () => {},
} as never

describe.each(Object.entries(NATIVE))('%s: refused requests', (_name, { app: start, respondBy }) => {
  describe('handlers of the application', () => {
    test('a handler responds to a refusal in its own format: 429 with quota headers, and the route does not run', async () => {
      const respond = respondBy(({ verdict, send }) => send({ code: 'SLOW_DOWN', waitMs: verdict.retryAfterMs }))
      const app = await start([{ name: 'api', store: frozen(), limit: 1, window: '10s', respond }])
      expect((await request(app.server).get('/')).status).toBe(200)
      const { status, headers, body } = await request(app.server).get('/')
      expect([status, body]).toEqual([429, { code: 'SLOW_DOWN', waitMs: 10_000 }])
      expect(headers).toMatchObject({
        ratelimit: '"api";r=0;t=10',
        'ratelimit-policy': '"api";q=1;w=10',
        'retry-after': '10',
        'cache-control': 'no-store',
      })
      expect(app.ran()).toBe(1)
      expect(app.errors).toEqual([])
    })

    test('a handler can choose another status, and sees the headers that are set', async () => {
      const respond = respondBy(({ send, header }) => send({ wait: header('retry-after') }, 420))
      const app = await start([{ ...none, limits: undefined, store: frozen(), respond }])
      const { status, body } = await request(app.server).get('/')
      // A limit of 0 never has room, so there is no Retry-After.
      expect([status, body]).toEqual([420, {}])
    })

    test('an async handler can respond later', async () => {
      const respond = respondBy(async ({ send }) => {
        await new Promise(setImmediate)
        return send({ late: true })
      })
      const app = await start([{ ...none, respond }])
      const { status, body } = await request(app.server).get('/')
      expect([status, body]).toEqual([429, { late: true }])
    })

    test('a refused HEAD request has no body', async () => {
      const app = await start([{ ...none, respond: respondBy(({ send }) => send({ code: 'SLOW_DOWN' })) }])
      const { status, text } = await request(app.server).head('/')
      expect([status, text ?? '']).toEqual([429, ''])
    })

    test.each([
      [
        'throws',
        () => {
          throw new Error('mine')
        },
      ],
      ['rejects', () => Promise.reject(new Error('mine'))],
    ])('an error of a handler that %s reaches the error handler once, with its status', async (_how, fails) => {
      const app = await start([{ ...none, respond: respondBy(fails) }])
      const { status, body } = await request(app.server).get('/')
      expect([status, body, app.ran()]).toEqual([500, { failed: 'mine' }, 0])
      expect(app.errors).toHaveLength(1)
    })

    test.each([
      [
        'throws nothing',
        () => {
          throw undefined
        },
      ],
      ['rejects with nothing', () => Promise.reject()],
    ])('a handler that %s reaches the error handler as an error', async (_how, fails) => {
      const app = await start([{ ...none, respond: respondBy(fails) }])
      const { status } = await request(app.server).get('/')
      expect([status, app.ran()]).toEqual([500, 0])
      expect(app.errors).toMatchObject([{ message: expect.stringContaining('a function failed with undefined') }])
    })

    test('a handler that fails after its response leaves the server alive', async () => {
      const respond = respondBy(async ({ send }) => {
        await send({ code: 'SLOW_DOWN' })
        throw new Error('too late')
      })
      const app = await start([{ ...none, respond }])
      // The framework decides about the end of this response.
      await request(app.server)
        .get('/')
        .catch(() => {})
      const { status } = await request(app.server)
        .get('/')
        .catch(() => ({ status: 429 }))
      expect([429, 500]).toContain(status)
      expect(app.ran()).toBe(0)
    })

    test('a handler that never responds releases permits of other limiters when the client disconnects', async () => {
      let calls = 0
      const never = () => {
        calls++
        return new Promise(() => {})
      }
      let now = 0
      const store = memoryStore({ clock: () => now })
      const before = { name: 'busy', store, limits: [concurrency({ limit: 1, ttl: '60ms' })], key: everyone() }
      const app = await start([before, { ...none, respond: respondBy(never) }])
      app.server.listen(0, '127.0.0.1')
      closing.push(() => app.server.close())
      await once(app.server, 'listening')
      const leaving = httpRequest({ port: (app.server.address() as AddressInfo).port, host: '127.0.0.1' }).end()
      leaving.on('error', () => {})
      await expect.poll(() => calls).toBe(1)
      const free = async () => (await app.limiters[0]?.peek('everyone'))?.remaining
      expect(await free()).toBe(0)
      leaving.destroy()
      const later = () => {
        now += 60
        return free()
      }
      await expect.poll(later, { timeout: 60_000 }).toBe(1)
    })

    test('in report mode the handler is not called', async () => {
      const respond = respondBy(({ send }) => send({ code: 'SLOW_DOWN' }))
      const app = await start([{ ...none, enforce: { mode: 'report' }, respond }])
      expect((await request(app.server).get('/')).text).toBe('ok')
    })
  })

  describe('pass()', () => {
    test('pass() hands the error handler a RateLimitError with status, headers and verdict, without a stack', async () => {
      const app = await start([{ name: 'api', store: frozen(), limit: 1, window: '10s', respond: pass() }])
      await request(app.server).get('/')
      const { status, headers, body } = await request(app.server).get('/')
      expect([status, body, app.ran()]).toEqual([429, { failed: 'Too Many Requests' }, 1])
      expect(headers).toMatchObject({ ratelimit: '"api";r=0;t=10', 'retry-after': '10', 'cache-control': 'no-store' })
      const [error] = app.errors as [RateLimitError]
      expect(error).toBeInstanceOf(RateLimitError)
      expect(error).toBeInstanceOf(Error)
      expect(error).not.toBeInstanceOf(SluiceError)
      expect(error).toMatchObject({ name: 'RateLimitError', code: 'RATE_LIMITED', statusCode: 429, expose: true })
      expect(error.headers).toMatchObject({ RateLimit: '"api";r=0;t=10', 'Retry-After': '10' })
      expect(error.verdict).toMatchObject({ allowed: false, reason: 'limited', policy: 'api' })
      expect(error.stack).not.toMatch(/\n\s+at /)
      expect(new Error('others have one').stack).toMatch(/\n\s+at /)
      expect(JSON.stringify(error)).not.toContain('verdict')
    })

    test('pass() results in 429 with the same headers if the framework handles errors itself', async () => {
      const app = await start([{ name: 'api', store: frozen(), limit: 1, window: '10s', respond: pass() }], false)
      await request(app.server).get('/')
      const { status, headers, text } = await request(app.server).get('/')
      expect(status).toBe(429)
      expect(text).toContain('Too Many Requests')
      expect(headers).toMatchObject({
        ratelimit: '"api";r=0;t=10',
        'ratelimit-policy': '"api";q=1;w=10',
        'retry-after': '10',
      })
    })

    test('pass() can have the status 503, except for blocked clients', async () => {
      const app = await start([{ ...none, limit: 1, key: everyone(), store: frozen(), respond: pass({ status: 503 }) }])
      await request(app.server).get('/')
      expect((await request(app.server).get('/')).status).toBe(503)
      await app.limiters[0]?.block('everyone', { for: '1m' })
      const { status, headers } = await request(app.server).get('/')
      expect([status, headers['retry-after'], headers.ratelimit]).toEqual([429, '60', undefined])
    })
  })

  test('handlers and pass() have the status 503 with decide "deny" during an outage', async () => {
    const limits = { ...none, limit: 5, store: away, unavailable: { decide: 'deny' } } as const
    const passing = await start([{ ...limits, respond: pass() }])
    expect((await request(passing.server).get('/')).status).toBe(503)
    expect(passing.errors).toMatchObject([{ message: 'Service Unavailable', verdict: { reason: 'unavailable' } }])
    const handling = await start([
      { ...limits, respond: respondBy(({ send, verdict }) => send({ is: verdict.reason })) },
    ])
    const { status, body } = await request(handling.server).get('/')
    expect([status, body]).toEqual([503, { is: 'unavailable' }])
  })

  test('handlers and pass() work in other responders and in single limits, with the last verdict', async () => {
    const otherwise = respondBy(({ send, verdict }) => send({ waitMs: verdict.retryAfterMs }))
    const full = await start([
      { ...none, limit: 1, store: frozen(), respond: queue({ size: 1, maxWait: '1s', otherwise }) },
    ])
    await request(full.server).get('/')
    expect((await request(full.server).get('/')).body).toEqual({ waitMs: 10_000 })
    const held = await start([{ ...none, respond: tarpit({ for: 1, answer: pass() }) }])
    expect((await request(held.server).get('/')).body).toEqual({ failed: 'Too Many Requests' })
    const own = await start([{ limits: [fixedWindow({ limit: 1, window: '1h', respond: pass({ status: 503 }) })] }])
    await request(own.server).get('/')
    expect((await request(own.server).get('/')).status).toBe(503)
    const blocked = await start([{ ...none, key: everyone(), respond: degrade({ otherwise }) }])
    await blocked.limiters[0]?.block('everyone', { for: '1m' })
    expect((await request(blocked.server).get('/')).status).toBe(429)
    expect(blocked.ran()).toBe(0)
  })
})

test.each(['Express 5', 'Express 4', 'Koa'].filter((name) => Object.hasOwn(NATIVE, name)))(
  '%s: a handler can let refused requests go on to the route, uncharged, with its status',
  async (name) => {
    const { app: start, respondBy } = NATIVE[name] as NativeFramework
    const respond = respondBy(({ proceed }) => proceed?.())
    const app = await start([{ name: 'api', store: frozen(), limit: 1, window: '10s', respond }])
    for (let n = 0; n < 3; n++) {
      const { status, text } = await request(app.server).get('/')
      expect([status, text]).toEqual([200, 'ok'])
    }
    expect(app.ran()).toBe(3)
    expect((await app.limiters[0]?.peek('127.0.0.1'))?.remaining).toBe(0)
  },
)

test('Express: the argument of next in a handler works as in any middleware', async () => {
  const app = makeExpress()
  app.set('env', 'test')
  const by = (...failure: unknown[]) =>
    express.rateLimit({ ...none, respond: express.handler((_req, _res, next) => next(...(failure as []))) })
  app.get('/error', by(Object.assign(new Error('mine'), { status: 418 })), (_req, res) => void res.send('ran'))
  app.get('/route', by('route'), (_req, res) => void res.send('ran'))
  expect((await request(app).get('/error')).status).toBe(418)
  expect((await request(app).get('/route')).status).toBe(404)
})

test('Fastify: the value that a handler returns is sent', async () => {
  const app = makeFastify()
  const returning = (value: unknown) => fastify.handler(() => value)
  await app.register(fastify.rateLimit, { global: false })
  const add = (url: string, value: unknown) =>
    app.get(url, { config: { rateLimit: { ...none, name: url.slice(1), respond: returning(value) } } }, () => 'ran')
  add('/object', { code: 'SLOW_DOWN' })
  add('/late', Promise.resolve({ code: 'LATER' }))
  add('/nothing', Promise.resolve())
  expect((await app.inject('/object')).json()).toEqual({ code: 'SLOW_DOWN' })
  expect((await app.inject('/late')).json()).toEqual({ code: 'LATER' })
  const { statusCode, body } = await app.inject('/nothing')
  expect([statusCode, body]).toEqual([429, ''])
})

describe('handlers over HTTP/2', () => {
  const get = async (port: number) => {
    const session = connect(`http://127.0.0.1:${port}`)
    closing.push(() => session.destroy())
    const stream = session.request({ ':path': '/' })
    const [headers] = await once(stream, 'response')
    let body = ''
    for await (const chunk of stream) body += chunk
    return [headers[':status'], headers['retry-after'], body]
  }

  test('Koa and Fastify run handlers and pass() over HTTP/2', async () => {
    const app = new Koa()
    app.use(
      koa.rateLimit({
        ...none,
        limit: 1,
        key: everyone(),
        respond: koa.handler((ctx) => Object.assign(ctx, { body: 'slow' })),
      }),
    )
    app.use((ctx) => Object.assign(ctx, { body: 'ok' }))
    const server = createHttp2Server(app.callback()).listen(0, '127.0.0.1')
    closing.push(() => server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    expect(await get(port)).toEqual([200, undefined, 'ok'])
    expect(await get(port)).toEqual([429, '10', 'slow'])

    const other = makeFastify({ http2: true })
    closing.push(() => other.close())
    await other.register(fastify.rateLimit, { ...none, limit: 1, key: everyone(), respond: pass() })
    other.get('/', async () => 'ok')
    const { port: otherPort } = new URL(await other.listen({ port: 0, host: '127.0.0.1' }))
    expect(await get(Number(otherPort))).toEqual([200, undefined, 'ok'])
    expect(await get(Number(otherPort))).toEqual([429, '10', expect.stringContaining('RATE_LIMITED')])
  })
})

test('methods with @RateLimited call handlers and pass() as well', async () => {
  const seen: unknown[] = []
  const limited = (respond: express.Responder<makeExpress.Request>) => {
    const descriptor = { value: async () => void seen.push('ran') }
    express.RateLimited({ ...none, respond })({}, 'list', descriptor)
    return descriptor.value as never
  }
  const app = makeExpress()
  app.get('/list', limited(express.handler((_req, res) => res.json({ code: 'SLOW_DOWN' }))))
  app.get('/show', limited(pass()))
  app.use((error: RateLimitError, _req: unknown, res: makeExpress.Response, _next: unknown) => {
    res.status(error.status).json({ failed: error.message })
  })
  const server = createServer(app)
  expect((await request(server).get('/list')).body).toEqual({ code: 'SLOW_DOWN' })
  expect((await request(server).get('/show')).body).toEqual({ failed: 'Too Many Requests' })
  expect(seen).toEqual([])
})

test('invalid arguments of handler and pass are rejected', () => {
  for (const make of [express.handler, koa.handler, fastify.handler]) {
    expect(() => make('text' as never)).toThrow(/handler: expected a function, got "text"/)
  }
  expect(() => pass({ status: 200 as never })).toThrow(/pass: status: expected 429 or 503, got 200/)
  expect(() => pass({ code: 1 } as never)).toThrow(/pass: code: unknown option/)
})
