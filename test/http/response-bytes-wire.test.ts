import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import { pipeline, Readable } from 'node:stream'
import { createGzip, gunzipSync } from 'node:zlib'
import { createLimiter, everyone, fixedWindow, memoryStore, throttle } from '@sluice/core'
import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import makeExpress from 'express'
import makeFastify from 'fastify'
import Koa from 'koa'
import { describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { until } from '../support/until.js'
import { receive } from './support/receive.js'

const MB = 1_000_000
const STEP = 64 * 1024

const closing = closedAfterEach()

const options = (limit: number, more: object = {}) => ({
  store: memoryStore(),
  key: everyone(),
  limits: [fixedWindow({ limit, window: '1h', unit: 'response-bytes' as const, anchor: 'first-request' as const })],
  ...more,
})

async function listen(server: ReturnType<typeof createServer>): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

describe('response bytes over HTTP/2', () => {
  const APPS = {
    Koa: async (limit: number, body: () => Buffer | Readable, more?: object) => {
      const { createServer } = await import('node:http2')
      const app = new Koa()
      app.silent = true
      const middleware = koa.rateLimit(options(limit, more))
      app.use(middleware)
      app.use((ctx) => {
        ctx.body = body()
      })
      const server = createServer(app.callback() as never).listen(0, '127.0.0.1')
      await once(server, 'listening')
      closing.push(() => server.close())
      return { port: (server.address() as AddressInfo).port, limiter: middleware.limiter }
    },
    Fastify: async (limit: number, body: () => Buffer | Readable, more?: object) => {
      const app = makeFastify({ http2: true })
      await app.register(fastify.rateLimit as never, options(limit, more) as never)
      app.all('/', (_request, reply) => {
        reply.send(body())
      })
      await app.listen({ port: 0, host: '127.0.0.1' })
      closing.push(() => app.close())
      return { port: (app.server.address() as AddressInfo).port, limiter: app.rateLimit.limiter }
    },
  }

  async function ask(port: number, method = 'GET') {
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    session.on('error', () => {})
    closing.push(() => session.destroy())
    const stream = session.request({ ':method': method, ':path': '/' })
    stream.on('error', () => {})
    let size = 0
    let status: number | undefined
    stream.on('response', (headers) => {
      status = headers[':status']
    })
    stream.on('data', (chunk: Buffer) => {
      size += chunk.length
    })
    await new Promise((resolve) => stream.once('close', resolve))
    return { status, size, code: stream.rstCode }
  }

  test.each(Object.entries(APPS))(
    '%s over HTTP/2: response bytes are counted, cut, and throttled',
    async (_name, make) => {
      const whole = await make(10 * MB, () => Buffer.alloc(3 * MB))
      expect(await ask(whole.port)).toEqual({ status: 200, size: 3 * MB, code: 0 })
      expect((await ask(whole.port, 'HEAD')).size).toBe(0)
      expect((await whole.limiter?.peek('everyone'))?.remaining).toBe(7 * MB)

      const stream = await make(MB, () => Readable.from([...new Array(30)].map(() => Buffer.alloc(100_000))))
      const cut = await ask(stream.port)
      expect([cut.status, cut.code]).toEqual([200, 8])
      expect(cut.size).toBeLessThanOrEqual(MB + STEP)
      expect((await ask(stream.port)).status).toBe(429)

      const respond = throttle({ bytesPerSecond: 400_000 })
      const slow = await make(100_000, () => Buffer.alloc(400_000), { respond })
      const began = performance.now()
      expect(await ask(slow.port)).toEqual({ status: 200, size: 400_000, code: 0 })
      expect(performance.now() - began).toBeGreaterThan(500)
    },
  )
})

/** An Express app with limiters, one behind the other. */
function app(limiters: ReturnType<typeof express.rateLimit>[], answer: (res: ServerResponse) => void) {
  const made = makeExpress()
  made.disable('etag')
  for (const limiter of limiters) made.use(limiter)
  made.use((_req, res) => answer(res))
  return createServer(made)
}

test('a body that ends with its connection is cut by a reset: HTTP/1.0', async () => {
  const limiter = express.rateLimit(options(1000))
  let goOn = () => {}
  const answer = (res: ServerResponse) => {
    res.write(Buffer.alloc(2000))
    goOn = () => void res.write('more')
  }
  const port = await listen(app([limiter], answer))
  const socket = connect(port, '127.0.0.1')
  const ended = new Promise((resolve) => socket.once('error', resolve).once('close', resolve))
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })
  socket.write('GET / HTTP/1.0\r\n\r\n')
  await until('one step beyond the quota', () => text.split('\r\n\r\n')[1]?.length === 2000)
  goOn()
  expect(await ended).toMatchObject({ code: 'ECONNRESET' })
})

test('a body counts after its compression by middleware behind the limiter', async () => {
  const limiter = express.rateLimit(options(MB))
  const made = makeExpress()
  made.use(limiter)
  made.use((_req, res, next) => {
    // As compression does: the handler's bytes come out of the original response, compressed.
    const write = res.write.bind(res)
    const end = res.end.bind(res)
    const gzip = createGzip()
    res.setHeader('Content-Encoding', 'gzip')
    gzip.on('data', (chunk) => {
      if (write(chunk)) return
      gzip.pause()
      res.once('drain', () => gzip.resume())
    })
    gzip.on('end', () => end())
    res.write = ((chunk: Buffer) => gzip.write(chunk)) as never
    res.end = ((chunk: Buffer) => gzip.end(chunk)) as never
    next()
  })
  made.use((_req, res) => void res.end(Buffer.alloc(5 * MB)))
  const got = await receive(await listen(createServer(made)))
  expect(gunzipSync(got.body).length).toBe(5 * MB)
  expect((await limiter.limiter.peek('everyone')).remaining).toBe(MB - got.body.length)
})

/**
 * Changes a response as the package `compression` does: bodies go through a stream, whose `drain` stands for that of the
 * response to all later listeners.
 */
function compress(_req: unknown, res: ServerResponse, next: () => void) {
  const { write, end, on } = res
  let gzip: ReturnType<typeof createGzip> | undefined
  const listeners: (() => void)[] = []
  const start = () => {
    if (gzip) return gzip
    const stream = createGzip()
    gzip = stream
    for (const listener of listeners) stream.on('drain', listener)
    res.setHeader('Content-Encoding', 'gzip')
    res.removeHeader('Content-Length')
    stream.on('data', (chunk) => void (write.call(res, chunk, 'utf8') === false && stream.pause()))
    stream.on('end', () => void end.call(res, undefined, 'utf8'))
    on.call(res, 'drain', () => void stream.resume())
    return stream
  }
  res.write = ((chunk: Buffer) => start().write(chunk)) as never
  res.end = ((chunk: Buffer) => void (chunk ? start().end(chunk) : start().end())) as never
  res.on = ((event: string, listener: () => void) => {
    if (event !== 'drain') return on.call(res, event, listener)
    if (gzip) gzip.on(event, listener)
    else listeners.push(listener)
    return res
  }) as never
  next()
}

test.each([
  ['in one piece', (res: ServerResponse) => void res.end(randomBytes(3 * MB))],
  ['piped', (res: ServerResponse) => void Readable.from([randomBytes(MB), randomBytes(MB), randomBytes(MB)]).pipe(res)],
  [
    'by pipeline',
    (res: ServerResponse) => void pipeline(Readable.from([randomBytes(2 * MB), randomBytes(MB)]), res, () => {}),
  ],
])('a body %s with compression in front of the limiter arrives whole, and counts uncompressed', async (_how, send) => {
  const limiter = express.rateLimit(options(10 * MB))
  const made = makeExpress()
  made.use(compress, limiter)
  made.use((_req, res) => send(res))
  const got = await receive(await listen(createServer(made)))
  expect([got.isWhole, gunzipSync(got.body).length]).toEqual([true, 3 * MB])
  expect((await limiter.limiter.peek('everyone')).remaining).toBe(7 * MB)
})

test('with compression in front of the limiter, a body over the quota is cut or throttled', async () => {
  const cut = express.rateLimit(options(MB))
  const slow = express.rateLimit(options(MB, { respond: throttle({ bytesPerSecond: 5 * MB }) }))
  const made = makeExpress()
  made.use(compress)
  made.get('/cut', cut)
  made.get('/slow', slow)
  made.use((_req, res) => void Readable.from([randomBytes(2 * MB)]).pipe(res))
  const port = await listen(createServer(made))
  const [whole, part] = [await receive(port, { path: '/slow' }), await receive(port, { path: '/cut' })]
  expect([whole.isWhole, gunzipSync(whole.body).length]).toEqual([true, 2 * MB])
  expect(part.isWhole).toBe(false)
  expect(part.body.length).toBeLessThan(1.2 * MB)
})

test('a response that is cut counts as one refusal of its client', async () => {
  const store = memoryStore({ offenders: true })
  const port = await listen(
    app([express.rateLimit(options(MB, { store }))], (res) => void res.end(Buffer.alloc(5 * MB))),
  )
  const refusals = async () => (await store.offenders?.({ policy: 'default', in: '1h' }))?.refusals
  await receive(port)
  expect(await refusals()).toBe(1)
  expect((await receive(port)).status).toBe(429)
  expect(await refusals()).toBe(2)
})

test('several limiters count one response, and the tightest cuts it', async () => {
  const limiters = [10 * MB, MB, 5 * MB].map((limit, i) => express.rateLimit(options(limit, { name: `of-${i}` })))
  const port = await listen(app(limiters, (res) => void Readable.from(pieces(500)).pipe(res)))
  const got = await receive(port)
  expect(got.isWhole).toBe(false)
  expect(got.body.length).toBeLessThanOrEqual(MB + STEP)
  const left = await Promise.all(limiters.map(async ({ limiter }) => (await limiter.peek('everyone')).remaining))
  expect(left[1]).toBe(0)
  await until('both others have counted the same', async () => {
    const [first = 0, , last = 0] = await Promise.all(
      limiters.map(async ({ limiter }) => (await limiter.peek('everyone')).remaining),
    )
    return 10 * MB - first === 5 * MB - last && first < 9.1 * MB
  })
})

test('two limiters can throttle one response', async () => {
  const respond = throttle({ bytesPerSecond: 100_000 })
  const limiters = ['a', 'b'].map((name) => express.rateLimit(options(1000, { name, respond })))
  const port = await listen(app(limiters, (res) => void res.end(Buffer.alloc(100_000))))
  const first = await receive(port)
  const second = await receive(port)
  expect([first.body.length, second.body.length]).toEqual([100_000, 100_000])
})

test('a handler that fails after the first bytes is charged for these', async () => {
  const limiter = express.rateLimit(options(MB))
  const made = makeExpress()
  made.set('env', 'test')
  made.use(limiter)
  made.use((_req, res) => {
    res.write(Buffer.alloc(5000))
    throw new Error('too late')
  })
  const got = await receive(await listen(createServer(made)))
  expect(got.isWhole).toBe(false)
  expect((await limiter.limiter.peek('everyone')).remaining).toBe(MB - 5000)
})

test('a Range request is charged for its part, and pipelined requests each for their own', async () => {
  const limiter = express.rateLimit(options(MB))
  const made = makeExpress()
  made.use(limiter)
  made.get('/range', (req, res) => {
    const [range] = (req.range(100_000) ?? []) as { start: number; end: number }[]
    const { start, end } = range as { start: number; end: number }
    res.status(206).set('Content-Range', `bytes ${start}-${end}/100000`)
    res.end(Buffer.alloc(100_000).subarray(start, end + 1))
  })
  made.get('/', (_req, res) => void pipeline(Readable.from(pieces(30)), res, () => {}))
  const port = await listen(createServer(made))
  const got = await receive(port, { path: '/range', headers: { Range: 'bytes=100-299' } })
  expect([got.status, got.body.length]).toEqual([206, 200])
  expect((await limiter.limiter.peek('everyone')).remaining).toBe(MB - 200)
  const socket = connect(port, '127.0.0.1')
  let size = 0
  socket.on('data', (chunk) => {
    size += chunk.length
  })
  const request = 'GET / HTTP/1.1\r\nHost: a\r\n'
  socket.write(`${request}\r\n${request}Connection: close\r\n\r\n`)
  await once(socket, 'close')
  expect(size).toBeGreaterThan(600_000)
  expect((await limiter.limiter.peek('everyone')).remaining).toBe(MB - 200 - 600_000)
})

test('a limiter without HTTP is charged responseBytes', async () => {
  const limits = [fixedWindow({ limit: 1000, window: '1h', unit: 'response-bytes' })]
  const limiter = createLimiter({ name: 'bytes-by-hand', store: memoryStore(), limits })
  const verdict = await limiter.consume('a', { responseBytes: 600 })
  expect([verdict.allowed, verdict.remaining]).toEqual([true, 400])
  expect((await limiter.consume('a', { responseBytes: 600 })).allowed).toBe(false)
  expect((await limiter.consume('a', { responseBytes: 400 })).allowed).toBe(true)
  expect((await limiter.consume('a', { responseBytes: 0 })).allowed).toBe(false)
  expect((await limiter.peek('a')).allowed).toBe(false)
  await limiter.refund('a', verdict)
  expect((await limiter.consume('a', { responseBytes: 0 })).remaining).toBe(600)
  await expect(limiter.consume('a')).rejects.toThrow(/responseBytes: expected a whole number of at least 0/)
})

function* pieces(count: number) {
  for (let i = 0; i < count; i++) yield Buffer.alloc(10_000)
}
