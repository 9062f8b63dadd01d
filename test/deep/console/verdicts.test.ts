// Deep: runs servers of three frameworks for thousands of situations.
import { createServer, request as httpRequest, type Server } from 'node:http'
import { consoleFor as onExpress } from '@sluice/console/express'
import { consoleFor as onFastify } from '@sluice/console/fastify'
import { consoleFor as onKoa } from '@sluice/console/koa'
import { memoryStore, redisStore } from '@sluice/core'
import { rateLimit as expressLimit } from '@sluice/express'
import { rateLimit as fastifyLimit } from '@sluice/fastify'
import { rateLimit as koaLimit } from '@sluice/koa'
import express from 'express'
import fc from 'fast-check'
import fastify from 'fastify'
import { Redis } from 'ioredis'
import Koa from 'koa'
import { beforeAll, describe, expect, test } from 'vitest'
import { agree, type Held, noneHeld, type Running } from '../../console/agreement.js'
import { headersOf, type NewStore, prepared, type Sent, type Situation, situation } from '../../console/situations.js'
import { authorize, portOf } from '../../console/support.js'
import { closedAfterEach } from '../../support/closed-after-each.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'

// The verdict of the page is that of the request that follows, over HTTP. `console/verdicts` has the same without a framework.

const RUNS = Number(process.env.SLUICE_VERDICTS ?? 300)
const RUNS_ON_REDIS = Number(process.env.SLUICE_VERDICTS_REDIS ?? 60)
const SEED = Number(process.env.SLUICE_VERDICTS_SEED ?? 20261130)

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
  return () => redis.stop()
})
const open = closedAfterEach()

interface App {
  readonly options: never
  /** Whether every proxy is trusted. */
  readonly isForgeable: boolean
  /** The options of a console for a limiter. */
  consoleOf(limiter: object): never
}

/** A server whose guard stands before every path but those of the console at `/sluice`. */
type Start = (app: App) => Promise<{ readonly server: Server; close(): unknown }>

const FRAMEWORKS: Readonly<Record<string, Start>> = {
  async Express({ options, isForgeable, consoleOf }) {
    const app = express()
    app.set('trust proxy', isForgeable || 'loopback')
    const limiter = expressLimit(options)
    const console = onExpress(consoleOf(limiter))
    app.use('/sluice', console)
    app.use(limiter)
    app.use((_request, response) => void response.end('done'))
    const server = createServer(app)
    await listening(server)
    return { server, close: () => console.close() }
  },
  async Koa({ options, isForgeable, consoleOf }) {
    const app = new Koa({ proxy: true, maxIpsCount: isForgeable ? 0 : 1 })
    const limiter = koaLimit(options)
    const console = onKoa({ path: '/sluice', ...(consoleOf(limiter) as object) } as never)
    app.use(console)
    app.use(limiter)
    app.use((ctx) => {
      ctx.body = 'done'
    })
    const server = createServer(app.callback())
    await listening(server)
    return { server, close: () => console.close() }
  },
  async Fastify({ options, isForgeable, consoleOf }) {
    const app = fastify({ trustProxy: isForgeable || 'loopback' })
    let limiter: object = {}
    await app.register(async (own) => {
      await own.register(fastifyLimit, options)
      own.removeAllContentTypeParsers()
      own.addContentTypeParser('*', (_request, payload, done) => {
        payload.resume().once('end', () => done(null))
      })
      own.all('/*', async () => 'done')
      limiter = own.rateLimit
    })
    await app.register(onFastify(consoleOf(limiter)), { prefix: '/sluice' })
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { server: app.server, close: () => app.close() }
  },
}

function listening(server: Server): Promise<void> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
}

async function started(start: Start, given: Situation, newStore: NewStore): Promise<Running> {
  const { store, options, shown, close } = await prepared(given, newStore)
  const { server, close: end } = await start({
    options: options as never,
    isForgeable: given.isForgeable === true,
    consoleOf: (limiter) => ({ store, authorize: operatorIn, ...(shown(limiter) as object) }) as never,
  })
  return {
    server,
    path: '/sluice',
    send: (request) => sent(portOf(server), request),
    async close() {
      await end()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await close()
    },
  }
}

/** Requests of every framework have headers. */
const operatorIn = (request: { readonly headers: Readonly<Record<string, string>> }) => authorize(request as never)

/** Resolves to whether the handler has answered. Proxies name the client. */
function sent(port: number, request: Sent): Promise<boolean> {
  const { ip, path, method, body } = request
  const headers = { ...headersOf(request), 'x-forwarded-for': ip, 'content-length': String(body) }
  return new Promise((resolve, reject) => {
    const asked = httpRequest({ host: '127.0.0.1', port, path, method, headers, agent: false }, (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => {
        const { statusCode } = response
        if (statusCode === 500) reject(new Error(text))
        else resolve(statusCode === 200 && text === 'done')
      })
    })
    asked.on('error', reject)
    asked.end('x'.repeat(body))
  })
}

describe.each(Object.entries(FRAMEWORKS))('the verdict of the page and a request to %s agree', (_name, start) => {
  const check = async (newStore: NewStore, numRuns: number): Promise<Held> => {
    const held = noneHeld()
    await fc.assert(
      fc.asyncProperty(situation, (given) => agree(given, () => started(start, given, newStore), held)),
      { seed: SEED, numRuns },
    )
    return held
  }

  test('in memory', async () => {
    const held = await check((lists) => memoryStore(lists as never), RUNS)
    for (const count of Object.values(held)) expect(count).toBeGreaterThan(0)
  }, 1_800_000)

  test('on Redis', async () => {
    const client = new Redis(redis.port)
    open.push(() => client.quit())
    let number = 0
    const prefix = `verdicts${Math.random().toString(36).slice(2)}`
    const held = await check(
      (lists) => redisStore(client, { prefix: `${prefix}${number++}:`, timeout: 10_000, ...(lists as object) }),
      RUNS_ON_REDIS,
    )
    for (const count of Object.values(held)) expect(count).toBeGreaterThan(0)
  }, 1_800_000)
})
