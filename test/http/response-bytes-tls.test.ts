import { once } from 'node:events'
import { connect as connectHttp2, createSecureServer } from 'node:http2'
import { createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { everyone, fixedWindow, type Limiter, memoryStore } from '@sluice/core'
import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import makeExpress from 'express'
import makeFastify from 'fastify'
import Koa from 'koa'
import { expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { CERTIFICATE, PRIVATE_KEY } from './support/certificate.js'
import { receive } from './support/receive.js'

const MB = 1_000_000
const STEP = 64 * 1024
const TLS = { cert: CERTIFICATE, key: PRIVATE_KEY }

const closing = closedAfterEach()

const options = (limit: number) => ({
  store: memoryStore(),
  key: everyone(),
  limits: [fixedWindow({ limit, window: '1h', unit: 'response-bytes' as const, anchor: 'first-request' as const })],
})

interface App {
  readonly server: { listen(port: number, host: string): unknown; close(): unknown } & NodeJS.EventEmitter
  readonly limiter: Limiter<string>
}

type Make = (limit: number, body: () => Buffer | Readable) => Promise<App>

function koaApp(limit: number, body: () => Buffer | Readable) {
  const app = new Koa()
  app.silent = true
  const middleware = koa.rateLimit(options(limit))
  app.use(middleware)
  app.use((ctx) => {
    ctx.body = body()
  })
  return { handle: app.callback() as never, limiter: middleware.limiter as never }
}

const fastifyApp =
  (server: object): Make =>
  async (limit, body) => {
    const app = makeFastify(server)
    await app.register(fastify.rateLimit as never, options(limit) as never)
    app.all('/', (_request, reply) => void reply.send(body()))
    await app.ready()
    return { server: app.server, limiter: app.rateLimit.limiter as never }
  }

const HTTPS: Record<string, Make> = {
  Express: async (limit, body) => {
    const app = makeExpress()
    const middleware = express.rateLimit(options(limit))
    app.use(middleware)
    app.use((_req, res) => {
      const sent = body()
      if (sent instanceof Readable) sent.pipe(res)
      else res.send(sent)
    })
    return { server: createServer(TLS, app), limiter: middleware.limiter as never }
  },
  Koa: async (limit, body) => {
    const { handle, limiter } = koaApp(limit, body)
    return { server: createServer(TLS, handle), limiter }
  },
  Fastify: fastifyApp({ https: TLS }),
}

const HTTP2: Record<string, Make> = {
  Koa: async (limit, body) => {
    const { handle, limiter } = koaApp(limit, body)
    return { server: createSecureServer(TLS, handle), limiter }
  },
  Fastify: fastifyApp({ http2: true, https: TLS }),
}

async function overHttps(port: number) {
  const { status, body, isWhole } = await receive(port, { rejectUnauthorized: false } as object, request)
  return { status, size: body.length, isWhole }
}

async function overHttp2(port: number) {
  const session = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
  session.on('error', () => {})
  closing.push(() => session.destroy())
  const stream = session.request({ ':path': '/' })
  stream.on('error', () => {})
  let status: number | undefined
  let size = 0
  stream.on('response', (headers) => {
    status = headers[':status']
  })
  stream.on('data', (chunk: Buffer) => {
    size += chunk.length
  })
  await once(stream, 'close')
  return { status, size, isWhole: stream.rstCode === 0 }
}

const APPS = [
  ...Object.entries(HTTPS).map(([name, make]) => [`${name} over HTTPS`, make, overHttps] as const),
  ...Object.entries(HTTP2).map(([name, make]) => [`${name} over HTTP/2`, make, overHttp2] as const),
]

test.each(APPS)(
  '%s: encrypted responses count by their size before encryption, and are cut',
  async (_name, make, ask) => {
    const start = async (limit: number, body: () => Buffer | Readable) => {
      const { server, limiter } = await make(limit, body)
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      closing.push(() => server.close())
      const { port } = (server as unknown as { address(): AddressInfo }).address()
      return { port, left: async () => (await limiter.peek('everyone')).remaining }
    }
    const whole = await start(10 * MB, () => Buffer.alloc(3 * MB))
    expect(await ask(whole.port)).toEqual({ status: 200, size: 3 * MB, isWhole: true })
    expect(await whole.left()).toBe(7 * MB)

    const stream = await start(MB, () => Readable.from([...new Array(30)].map(() => Buffer.alloc(100_000))))
    const cut = await ask(stream.port)
    expect([cut.status, cut.isWhole]).toEqual([200, false])
    expect(cut.size).toBeLessThanOrEqual(MB + STEP)
    expect(await stream.left()).toBe(0)
    expect((await ask(stream.port)).status).toBe(429)
  },
)
