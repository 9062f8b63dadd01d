import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:http2'
import * as express from '@sluice/express'
import * as fastifyAdapter from '@sluice/fastify'
import makeExpress from 'express'
import fastify from 'fastify'
import request from 'supertest'
import { describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'

const { delay, everyone, gcra, memoryStore, shadow, throttle } = express

const closing = closedAfterEach()

describe('responders over HTTP/2', () => {
  const serve = async (options: fastifyAdapter.FastifyRateLimitOptions, answer: () => unknown) => {
    const app = fastify({ http2: true })
    await app.register(fastifyAdapter.rateLimit, { key: everyone(), ...options } as never)
    app.get('/', async () => answer())
    const session = connect(await app.listen({ port: 0, host: '127.0.0.1' }))
    closing.push(
      () => app.close(),
      () => session.destroy(),
    )
    const get = () => {
      const stream = session.request({ ':path': '/' })
      const startedAt = performance.now()
      const chunks: Buffer[] = []
      let headers: Record<string, unknown> = {}
      stream.on('error', () => {})
      stream.on('response', (received) => {
        const { date: _date, ...others } = received
        headers = { ...others }
      })
      stream.on('data', (chunk) => chunks.push(chunk))
      const response = new Promise<{ headers: Record<string, unknown>; body: Buffer; took: number }>((resolve) => {
        stream.on('close', () => resolve({ headers, body: Buffer.concat(chunks), took: performance.now() - startedAt }))
      })
      stream.end()
      return { stream, response }
    }
    return Object.assign(get, { server: app.server })
  }

  test('over HTTP/2 throttle slows responses down, to the byte', async () => {
    const bytes = Buffer.from(Array.from({ length: 40_000 }, (_, i) => i % 251))
    const get = await serve(
      { limit: 0, window: 1, respond: throttle({ bytesPerSecond: 80_000, after: 16_000 }) },
      () => bytes,
    )
    const { headers, body, took } = await get().response
    expect(headers).toMatchObject({ ':status': 200, 'content-length': '40000' })
    expect(body.equals(bytes)).toBe(true)
    expect(took).toBeGreaterThan(230)
    expect(took).toBeLessThan(15_000)
  })

  test('over HTTP/2 a client that leaves while delayed never reaches the handler', async () => {
    let ran = 0
    let now = 0
    const store = memoryStore({ clock: () => now })
    const get = await serve({ store, limits: [gcra({ limit: 1, window: 100 })], respond: delay() }, () => `${++ran}`)
    await get().response
    const arrived = once(get.server, 'stream')
    const leaving = get()
    const [there] = await arrived
    const closed = once(there, 'close')
    leaving.stream.close(8)
    await closed
    now = 100
    const staying = await get().response
    expect(staying.headers[':status']).toBe(200)
    expect(ran).toBe(2)
  })

  test('over HTTP/2 a shadow equals the real response', async () => {
    const respond = shadow({ body: { ok: true } })
    const get = await serve({ limit: 1, window: '10s', respond }, () => ({ ok: true }))
    const real = await get().response
    const shadowed = await get().response
    // The real handler forbids no cache, and the page says to send the field in both.
    const { 'cache-control': ofShadow, ...fields } = shadowed.headers
    expect([ofShadow, fields, shadowed.body]).toEqual(['no-store', real.headers, real.body])
  })
})

describe('shadow in Express', () => {
  const start = () => {
    let ids = 0
    let ran = 0
    const app = makeExpress()
    app.use((_req, res, next) => {
      res.setHeader('X-Request-Id', String(++ids))
      res.setHeader('Cache-Control', 'no-store') // as a shadow
      next()
    })
    const limiter = express.rateLimit({
      store: memoryStore({ clock: () => 0 }),
      limits: [gcra({ limit: 1, window: '1h' })],
      respond: shadow({ body: { ok: true } }),
    })
    app.get('/item/:id', limiter, (_req, res) => {
      ran++
      res.json({ ok: true })
    })
    const server = createServer(app).listen(0)
    closing.push(() => server.close())
    return { server, limiter: limiter.limiter, ran: () => ran }
  }

  test('a shadow responds with 304 to a matching ETag, like the real route', async () => {
    const app = start()
    const first = await request(app.server).get('/item/1')
    const etag = first.headers.etag as string
    await app.limiter.reset({ ip: '127.0.0.1' })
    const real = await request(app.server).get('/item/1').set('If-None-Match', etag)
    const shadowed = await request(app.server).get('/item/1').set('If-None-Match', etag)
    expect([real.status, shadowed.status, app.ran()]).toEqual([304, 304, 2])
    expect(Object.keys(shadowed.headers)).toEqual(Object.keys(real.headers))
  })

  test('a shadow keeps headers of earlier middleware, such as the id of a request', async () => {
    const app = start()
    const real = await request(app.server).get('/item/1')
    const shadowed = await request(app.server).get('/item/1')
    expect([real.headers['x-request-id'], shadowed.headers['x-request-id'], app.ran()]).toEqual(['1', '2', 1])
    expect(Object.keys(shadowed.headers)).toEqual(Object.keys(real.headers))
  })
})
