import { once } from 'node:events'
import { createServer, IncomingMessage, ServerResponse } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { concurrency, createLimiter, everyone, type Limiter, limiterOf, memoryStore } from '@sluice/core'
import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import makeExpress from 'express'
import makeFastify from 'fastify'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { opened } from '../deep/fuzz/support/wire.js'
import { Permits } from '../support/inside.js'
import { until } from '../support/until.js'
import { permitContract, stands } from './permits.contract.js'
import {
  type Handling,
  listen,
  PERMIT_APPS,
  PERMIT_APPS_HTTP2,
  type PermitAppFactory,
  type PermitHandlers,
} from './support/permit-apps.js'
import { http1Client, http2Client, stop } from './support/permit-clients.js'

for (const [name, factory] of Object.entries(PERMIT_APPS)) permitContract(name, factory, http1Client)
for (const [name, factory] of Object.entries(PERMIT_APPS_HTTP2)) permitContract(name, factory, http2Client)

const closing: (() => unknown)[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const close of closing.splice(0).reverse()) await close()
})

const TTL_MS = 60_000
const busy = { name: 'busy', key: everyone(), limits: [concurrency({ limit: 1, ttl: TTL_MS, maxHold: TTL_MS })] }
const free = async (limiter: Pick<Limiter<string>, 'peek'>) => (await limiter.peek('everyone')).remaining

async function serve(make: PermitAppFactory, handlers: Parameters<PermitAppFactory>[1], options = {}) {
  const { server, limiter } = await make([{ ...busy, store: memoryStore(), ...options } as never], handlers)
  const port = await listen(server)
  closing.push(() => stop(server))
  return { server, port, limiter }
}

describe.each(Object.entries(PERMIT_APPS))('%s', (_name, make) => {
  async function cutOff(handlers: PermitHandlers, path: string, isHandled: () => unknown) {
    const app = await serve(make, handlers, { body: { max: 10 } })
    const socket = await opened(app.port)
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`)
    await until('the handler runs', isHandled)
    socket.write(`20\r\n${'b'.repeat(32)}\r\n0\r\n\r\n`)
    const [answer] = await once(socket, 'data')
    expect(String(answer)).toMatch(/^HTTP\/1.1 413 /)
    return app
  }

  test('a refusal requests the average time for which permits were held; its verdict has the time of their end', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    let holds = true
    let respond = () => {}
    const app = await serve(make, {
      answer: async () => {
        if (!holds) await new Promise<void>((resolve) => (respond = resolve))
        else vi.advanceTimersByTime(7_000)
        return 'done'
      },
    })
    const send = () => fetch(`http://localhost:${app.port}/`)
    expect((await send()).status).toBe(200)
    await until('the permit is released', async () => (await free(app.limiter)) === 1)
    holds = false
    const held = send()
    await until('the permit is taken', async () => (await free(app.limiter)) === 0)
    const refused = await send()
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '7'])
    expect(refused.headers.get('ratelimit')).toMatch(/;t=7$/)
    expect((await app.limiter.peek('everyone')).retryAfterMs).toBeGreaterThan(50_000)
    respond()
    expect((await held).status).toBe(200)
  })

  test.each([
    [
      'reads end when it responds',
      ({ raw }: Handling) =>
        () =>
          raw.end('done'),
    ],
    ['has read end before', ({ raw }: Handling) => raw.end.bind(raw, 'done', 'utf8')],
  ])('a 413 in the middle of an unread body releases no permit of a handler that %s', async (_what, toRespond) => {
    let respond: (() => unknown) | undefined
    let raw: Handling['raw'] | undefined
    const takeOver = (handling: Handling) => {
      raw = handling.raw
      respond = toRespond(handling)
    }
    const app = await cutOff({ takeOver }, '/raw', () => respond)
    await until('the connection is closed', () => raw?.destroyed)
    expect(await free(app.limiter)).toBe(0)
    respond?.()
    await until('the permit is free', async () => (await free(app.limiter)) === 1)
  })

  test('after a 413 in an unread body the permit is released when the handler responds through its framework', async () => {
    const handled: Handling[] = []
    let finish = (_text: string) => {}
    const answer = (handling: Handling) => {
      handled.push(handling)
      return new Promise<string>((resolve) => (finish = resolve))
    }
    const app = await cutOff({ answer }, '/', () => handled[0])
    await until('the connection is closed', () => handled[0]?.raw.destroyed)
    expect(await free(app.limiter)).toBe(0)
    finish('done')
    await until('the permit is free', async () => (await free(app.limiter)) === 1)
  })

  test('after a 413 behind another response, a handler that responds holds no permit once its client left', async () => {
    const handled: Handling[] = []
    const limits = [concurrency({ limit: 2, ttl: TTL_MS })]
    const takeOver = (handling: Handling) => handled.push(handling)
    const app = await serve(make, { takeOver }, { limits, body: { max: 10 } })
    const socket = await opened(app.port)
    const request = 'GET /raw HTTP/1.1\r\nHost: x\r\n'
    socket.write(`${request}\r\n${request}Transfer-Encoding: chunked\r\n\r\n`)
    await until('both handlers run', () => handled[1])
    socket.write(`20\r\n${'b'.repeat(32)}\r\n`)
    await until('the response is 413', () => handled[1]?.raw.headersSent)
    handled[1]?.raw.end()
    socket.destroy()
    await until('the connection is closed', () => handled[1]?.raw.destroyed)
    handled[0]?.raw.end()
    await until('the permits are free', async () => (await free(app.limiter)) === 2)
  })

  const head = (method: string, ...lines: string[]) =>
    [`${method} /raw HTTP/1.1`, 'Host: x', 'Content-Type: text/plain', ...lines, '', ''].join('\r\n')
  const CHUNKED = 'Transfer-Encoding: chunked'
  test.each<[string, string, 'destroy' | 'resetAndDestroy' | 'end']>([
    ['leaves', head('GET'), 'destroy'],
    ['resets', head('GET'), 'resetAndDestroy'],
    ['half-closes', head('GET'), 'end'],
    ['leaves a HEAD request', head('HEAD'), 'destroy'],
    ['leaves over HTTP/1.0', 'GET /raw HTTP/1.0\r\n\r\n', 'destroy'],
    ['leaves after Connection: close', head('GET', 'Connection: close'), 'resetAndDestroy'],
    ['leaves in an announced body', `${head('POST', 'Content-Length: 10')}12345`, 'destroy'],
    ['resets in an announced body', `${head('POST', 'Content-Length: 10')}12345`, 'resetAndDestroy'],
    ['half-closes in an announced body', `${head('POST', 'Content-Length: 10')}12345`, 'end'],
    ['leaves in a chunk', `${head('POST', CHUNKED)}a\r\n12345`, 'destroy'],
    ['leaves between chunks', `${head('POST', CHUNKED)}5\r\n12345\r\n`, 'resetAndDestroy'],
    ['sends a broken chunk', `${head('POST', CHUNKED)}5\r\n12345\r\nzz\r\n`, 'destroy'],
    ['leaves before 100 Continue', head('POST', 'Content-Length: 5', 'Expect: 100-continue'), 'destroy'],
    ['sends a broken request behind', `${head('GET')}\0\r\n\r\n`, 'destroy'],
    ['leaves with a request behind', head('GET').repeat(2), 'resetAndDestroy'],
    ['leaves in the head of a request behind', head('GET') + head('GET').slice(0, 20), 'destroy'],
  ])('a client that %s holds no permit for longer than ttl', async (_what, text, leave) => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const clock = { now: 1_000_000 }
    const store = memoryStore({ clock: () => clock.now })
    // Runs and never responds, if the framework lets it run at all.
    const app = await serve(make, { takeOver: () => {} }, { store })
    const socket = await opened(app.port)
    let isAnswered = false
    socket.on('data', () => {
      isAnswered = true
    })
    socket.write(text, 'latin1')
    await until('the permit is taken', async () => isAnswered || (await free(app.limiter)) === 0)
    socket[leave]()
    if (!socket.destroyed) await once(socket, 'close')
    await until('the server notices', async () => (await connectionsOf(app.server)) === 0)
    for (let n = 0; n < 3; n++) {
      clock.now += TTL_MS / 3
      await vi.advanceTimersByTimeAsync(TTL_MS / 3)
    }
    expect(await free(app.limiter)).toBe(1)
  })
})

test('a permit is released at its next renewal where a response is over and has emitted no event', async () => {
  const limiter = createLimiter({ name: 'permits', store: memoryStore(), limits: [concurrency({ limit: 1 })] })
  const permits = new Permits(limiter, { shortestTtlMs: TTL_MS, longestTtlMs: TTL_MS, maxHoldMs: TTL_MS })
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  permits.hold(await limiter.consume('everyone'), response)
  response.writeHead(200)
  permits.tick()
  expect(await free(limiter)).toBe(0)
  response.destroyed = true
  permits.tick()
  expect(await free(limiter)).toBe(1)
})

test('over HTTP/2 a permit is released when everything is sent, even if the client keeps its request open', async () => {
  const make = PERMIT_APPS_HTTP2['Koa over HTTP/2'] as PermitAppFactory
  const takeOver = ({ raw }: Handling) => {
    raw.req.on('data', () => raw.end('done'))
  }
  const app = await serve(make, { takeOver })
  const session = connectHttp2(`http://127.0.0.1:${app.port}`)
  closing.push(() => session.destroy())
  const stream = session.request({ ':path': '/raw', ':method': 'POST' }, { endStream: false })
  stream.on('error', () => {}).resume()
  stream.write('a')
  await once(stream, 'end')
  await until('the permit is free', async () => (await free(app.limiter)) === 1)
  expect(stream.closed).toBe(false)
})

test('maxHold leaves a slowly read body alone, and ends one that is not read', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const raws: Handling['raw'][] = []
  const takeOver = ({ raw }: Handling) => {
    raws.push(raw)
    raw.end(Buffer.alloc(40_000_000))
  }
  const app = await serve(PERMIT_APPS['Express 5'] as PermitAppFactory, { takeOver })
  const http = http1Client(app.port)
  closing.push(() => http.close())
  const { incoming, status } = await http.ask('/raw')
  expect(await status).toBe(200)
  const queued = () =>
    (raws[0] as unknown as { req: { socket: { _handle: { writeQueueSize: number } } } }).req.socket._handle
      .writeQueueSize
  for (let n = 0; n < 6; n++) {
    await vi.advanceTimersByTimeAsync(TTL_MS / 3)
    for (const before = queued(); queued() === before; await sleep(1)) incoming.read()
  }
  expect(await free(app.limiter)).toBe(0)
  await stands(queued)
  await vi.advanceTimersByTimeAsync(4 * (TTL_MS / 3))
  await until('the permit is free', async () => (await free(app.limiter)) === 1)
  expect(raws[0]?.destroyed).toBe(true)
})

test('a response that waits behind an endless one is ended with it after maxHold', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const app = makeExpress()
  const limiter = express.rateLimit(busy)
  app.get('/events', (_req, res) => void res.writeHead(200).write('data: hello\n\n'))
  app.get('/', limiter, (_req, res) => void res.send('done'))
  const server = createServer(app)
  const socket = await opened(await listen(server))
  closing.push(() => stop(server))
  socket.resume().write('GET /events HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await until('the permit is taken', async () => (await free(limiter.limiter as never)) === 0)
  await vi.advanceTimersByTimeAsync(4 * (TTL_MS / 3))
  await until('the permit is free', async () => (await free(limiter.limiter as never)) === 1)
  await until('no connection is left', async () => (await connectionsOf(server)) === 0)
})

describe('a decorated method whose client has left, and that responds with nothing', () => {
  /** A method that ends when the test calls `end`, and the number of its runs. */
  function method() {
    let end = () => {}
    let runs = 0
    const value = async () => {
      runs++
      await new Promise<void>((resolve) => {
        end = resolve
      })
    }
    return { value, end: () => end(), runs: () => runs }
  }

  test.each([
    [
      'Express',
      async (value: () => Promise<void>) => {
        const controller = { list: value as (req: unknown, res: unknown, next: unknown) => Promise<void> }
        const descriptor = { value: controller.list as never, configurable: true }
        express.RateLimited(busy)(controller, 'list', descriptor)
        Object.defineProperty(controller, 'list', descriptor)
        const app = makeExpress()
        app.get('/', (req, res, next) => void controller.list(req, res, next))
        return { server: createServer(app), limiter: limiterOf(controller, 'list') }
      },
    ],
    [
      'Fastify',
      async (value: () => Promise<void>) => {
        const controller = { list: value as (request: unknown, reply: unknown) => Promise<void> }
        const descriptor = { value: controller.list as never, configurable: true }
        fastify.RateLimited(busy)(controller, 'list', descriptor)
        Object.defineProperty(controller, 'list', descriptor)
        const app = makeFastify()
        app.get('/', (request, reply) => controller.list(request, reply))
        await app.ready()
        return { server: app.server, limiter: limiterOf(controller, 'list') }
      },
    ],
  ])('%s: a decorated method holds its permit until its promise has settled', async (_name, make) => {
    const { value, end, runs } = method()
    const { server, limiter } = await make(value)
    const socket = await opened(await listen(server))
    closing.push(() => stop(server))
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await until('the method runs', () => runs() === 1)
    socket.destroy()
    await until('no connection is left', () => connectionsOf(server).then((count) => count === 0))
    expect(await free(limiter)).toBe(0)
    end()
    await until('the permit is free', async () => (await free(limiter)) === 1)
  })
})

function connectionsOf(server: { getConnections(done: (error: Error | null, count: number) => void): unknown }) {
  return new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)))
}
