import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import websocket from '@fastify/websocket'
import { concurrency, everyone, type Limiter, memoryStore } from '@sluice/core'
import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import makeExpress, { type RequestHandler } from 'express'
import expressWs from 'express-ws'
import makeFastify from 'fastify'
import Koa from 'koa'
import { describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { opened } from '../deep/fuzz/support/wire.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { until } from '../support/until.js'
import { listen } from './support/permit-apps.js'
import { stop } from './support/permit-clients.js'

/** What runs between the limiter and the WebSocket, and the limiter of all clients together. */
interface Upgrading {
  readonly server: Server
  readonly limiter: Limiter<string>
}

type Before = (request: IncomingMessage) => Promise<unknown>
type Make = (options: object, before: Before) => Promise<Upgrading>

/** Hands upgrades to an app, which decides on them as on any request. */
function upgradeBy(
  server: Server,
  handle: (req: IncomingMessage, res: ServerResponse, accept: () => void) => unknown,
): void {
  const sockets = new WebSocketServer({
    noServer: true,
    verifyClient: ({ req }: { req: IncomingMessage }) => req.url !== '/no',
  })
  server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    const res = new ServerResponse(req)
    res.assignSocket(socket as never)
    socket.on('error', () => {})
    res.on('finish', () => socket.end())
    handle(req, res, () => sockets.handleUpgrade(req, socket, head, () => {}))
  })
}

const APPS: Readonly<Record<string, Make>> = {
  'ws behind Express': async (options, before) => {
    const app = makeExpress()
    const limiter = express.rateLimit(options as never)
    app.use(limiter, (req, _res, next) => void before(req).then(() => next()))
    const server = createServer(app)
    upgradeBy(server, (req, res, accept) => (app as unknown as RequestHandler)(req as never, res as never, accept))
    return { server, limiter: limiter.limiter as never }
  },
  'ws behind Koa': async (options, before) => {
    const app = new Koa().on('error', () => {}) as Koa
    const limiter = koa.rateLimit(options as never)
    app.use(limiter).use(async (ctx) => {
      await before(ctx.req)
      ctx.respond = false
      ;(ctx.req as { accept?: () => void }).accept?.()
    })
    const server = createServer(app.callback())
    upgradeBy(server, (req, res, accept) => app.callback()(Object.assign(req, { accept }), res))
    return { server, limiter: limiter.limiter as never }
  },
  '@fastify/websocket': async (options, before) => {
    const app = makeFastify()
    await app.register(websocket, {
      options: { verifyClient: ({ req }: { req: IncomingMessage }) => req.url !== '/no' },
    })
    await app.register(fastify.rateLimit, options as never)
    app.addHook('preHandler', async ({ raw }) => void (await before(raw)))
    app.get('/*', { websocket: true }, () => {})
    await app.ready()
    return { server: app.server, limiter: app.rateLimit.limiter as never }
  },
}

const UPGRADE = [
  'GET / HTTP/1.1',
  'Host: x',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  '\r\n',
].join('\r\n')

const closing = closedAfterEach()

async function serve(make: Make, options: object, before: Before = async () => {}) {
  const { server, limiter } = await make({ name: 'sockets', store: memoryStore(), key: everyone(), ...options }, before)
  closing.push(() => stop(server))
  const port = await listen(server)
  const connect = (path = '/') => {
    const client = new WebSocket(`ws://127.0.0.1:${port}${path}`).on('error', () => {})
    closing.push(() => client.terminate())
    return client
  }
  /** 101 for an open socket, else the status of the refusal. */
  const status = async (client: WebSocket) =>
    new Promise<number | undefined>((resolve) => {
      client.on('open', () => resolve(101))
      client.on('unexpected-response', (_request, response) => resolve(response.statusCode))
    })
  return { connect, status, port, left: async () => (await limiter.peek('everyone')).remaining }
}

describe.each(Object.entries(APPS))('%s', (_name, make) => {
  const limits = [concurrency({ limit: 2, ttl: '1h' })]

  test.each([
    ['closes', (client: WebSocket) => client.close()],
    ['loses its connection', (client: WebSocket) => client.terminate()],
  ])('an open socket holds its permit until it %s', async (_how, leave) => {
    const { connect, status, left } = await serve(make, { limits })
    const clients = [connect(), connect()]
    expect(await Promise.all(clients.map(status))).toEqual([101, 101])
    expect(await left()).toBe(0)
    expect(await status(connect())).toBe(429)
    leave(clients[0] as WebSocket)
    await until('the permit is free', async () => (await left()) === 1)
    expect(await status(connect())).toBe(101)
  })

  test.each(['destroy', 'resetAndDestroy'] as const)(
    '%s of a client before its upgrade is accepted frees the permit when the handler goes on',
    async (leave) => {
      let goOn: (() => void) | undefined
      const { port, left } = await serve(make, { limits }, () => new Promise<void>((resolve) => (goOn = resolve)))
      const client = await opened(port)
      client.write(UPGRADE)
      await until('the handler runs', () => goOn)
      client[leave]()
      await once(client, 'close')
      expect(await left()).toBe(1)
      goOn?.()
      await until('the permit is free', async () => (await left()) === 2)
    },
  )

  test('a handler that destroys the socket instead of accepting an upgrade releases its permit', async () => {
    const { connect, left } = await serve(make, { limits }, async ({ socket }) => {
      socket.destroy()
      await new Promise(() => {})
    })
    const client = connect()
    await until('the client notices', () => client.readyState === WebSocket.CLOSED)
    await until('the permit is free', async () => (await left()) === 2)
  })

  test('a refused upgrade releases its permit', async () => {
    const { connect, status, left } = await serve(make, { limits })
    expect(await status(connect('/no'))).toBe(401)
    await until('the permit is free', async () => (await left()) === 2)
  })

  test('with count: failure, an accepted upgrade does not count, and one that is refused does', async () => {
    const { connect, status, left } = await serve(make, { limit: 2, window: '1h', count: { only: 'failure' } })
    for (let n = 0; n < 5; n++) expect(await status(connect())).toBe(101)
    expect(await left()).toBe(2)
    expect(await status(connect('/no'))).toBe(401)
    expect(await status(connect('/no'))).toBe(401)
    await until('both count', async () => (await left()) === 0)
    expect(await status(connect())).toBe(429)
  })

  test('with count: success, an accepted upgrade counts while its socket is open, and one that is refused does not', async () => {
    const { connect, status, left } = await serve(make, { limit: 2, window: '1h', count: { only: 'success' } })
    expect(await status(connect('/no'))).toBe(401)
    await until('the charge is back', async () => (await left()) === 2)
    expect(await status(connect())).toBe(101)
    expect(await left()).toBe(1)
  })

  test('a ban counts the upgrades that are refused', async () => {
    const ban = { after: 2, within: '1h', for: ['1h'], count: { only: 401 } }
    const { connect, status } = await serve(make, { limit: 100, window: '1h', key: undefined, ban })
    expect([await status(connect()), await status(connect('/no')), await status(connect('/no'))]).toEqual([
      101, 401, 401,
    ])
    await until('the client is banned', async () => (await status(connect())) !== 101)
  })
})

describe('express-ws', () => {
  test('an open socket holds its permit until it closes, and is a success', async () => {
    const { app } = expressWs(makeExpress())
    const store = memoryStore()
    const sockets = express.rateLimit({
      name: 'open',
      store,
      key: everyone(),
      limits: [concurrency({ limit: 2, ttl: '1h' })],
    })
    const failures = express.rateLimit({
      name: 'failed',
      store,
      key: everyone(),
      limit: 1,
      window: '1h',
      count: { only: 'failure' },
    })
    app.use(sockets as never, failures as never)
    app.ws('/', () => {})
    const server = app.listen(0, '127.0.0.1')
    closing.push(() => stop(server))
    await once(server, 'listening')
    const left = async (limiter: typeof sockets) => (await limiter.limiter.peek('everyone' as never)).remaining
    const connect = async () => {
      const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/`)
      closing.push(() => client.terminate())
      await once(client, 'open')
      return client
    }
    const first = await connect()
    await connect()
    await until('both permits are taken', async () => (await left(sockets)) === 0)
    expect(await left(failures)).toBe(1)
    const [code] = await once(await connect(), 'close')
    expect(code).toBe(1005)
    first.close()
    await until('the permit is free', async () => (await left(sockets)) === 1)
  })
})
