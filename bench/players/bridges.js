// A server under a limiter of others, with its own Redis store or with ours. The limit is out of reach.
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { sluiceStore as forExpress } from '@sluice/bridges/express-rate-limit'
import { sluiceStore as forFastify } from '@sluice/bridges/fastify-rate-limit'
import { sluiceStore as forHono } from '@sluice/bridges/hono-rate-limiter'
import { sluiceLimiter } from '@sluice/bridges/rate-limiter-flexible'
import { redisStore } from '@sluice/core'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import fastify from 'fastify'
import { Hono } from 'hono'
import { RedisStore as HonoRedisStore, rateLimiter } from 'hono-rate-limiter'
import { Redis } from 'ioredis'
import { RedisStore } from 'rate-limit-redis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { CLIENT_HEADER } from '../contestants/http.js'
import { answer } from '../lib/child.js'

const LIMIT = 1000
const WINDOW_MS = 60_000

/** @typedef {{ redis: Redis, isOurs: boolean }} Setting */

/** @type {Record<string, (setting: Setting) => Promise<import('node:http').Server>>} */
const PEERS = {
  async 'express-rate-limit'({ redis, isOurs }) {
    const store = isOurs
      ? forExpress({ name: 'bench', store: redisStore(redis) })
      : new RedisStore({ sendCommand: (command, ...args) => /** @type {any} */ (redis.call(command, ...args)) })
    const app = express()
    app.use(
      rateLimit({
        windowMs: WINDOW_MS,
        limit: LIMIT,
        validate: false,
        keyGenerator: (req) => String(req.headers[CLIENT_HEADER]),
        store: /** @type {any} */ (store),
      }),
    )
    app.get('/', (_req, res) => void res.send('ok'))
    return createServer(app)
  },
  async 'hono-rate-limiter'({ redis, isOurs }) {
    const client = {
      scriptLoad: (/** @type {string} */ script) => redis.script('LOAD', script),
      evalsha: (/** @type {string} */ sha, /** @type {string[]} */ keys, /** @type {any[]} */ args) =>
        redis.evalsha(sha, keys.length, ...keys, ...args),
      decr: (/** @type {string} */ key) => redis.decr(key),
      del: (/** @type {string} */ key) => redis.del(key),
    }
    const store = isOurs
      ? forHono({ name: 'bench', store: redisStore(redis) })
      : new HonoRedisStore({ client: /** @type {any} */ (client) })
    const keyGenerator = (/** @type {import('hono').Context} */ c) => String(c.req.header(CLIENT_HEADER))
    const app = new Hono()
    app.use(rateLimiter({ windowMs: WINDOW_MS, limit: LIMIT, keyGenerator, store: /** @type {any} */ (store) }))
    app.get('/', (c) => c.text('ok'))
    return createServer(getRequestListener(app.fetch))
  },
  async '@fastify/rate-limit'({ redis, isOurs }) {
    const store = isOurs ? { store: forFastify({ name: 'bench', store: redisStore(redis) }) } : { redis }
    // Its types and those of @sluice/fastify declare the same members of Fastify's.
    const plugin = '@fastify/rate-limit'
    const { default: limiter } = await import(plugin)
    const app = fastify()
    await app.register(limiter, {
      max: LIMIT,
      timeWindow: WINDOW_MS,
      keyGenerator: (/** @type {import('fastify').FastifyRequest} */ req) => String(req.headers[CLIENT_HEADER]),
      ...store,
    })
    app.get('/', async () => 'ok')
    await app.ready()
    return app.server
  },
  async 'rate-limiter-flexible'({ redis, isOurs }) {
    const options = { points: LIMIT, duration: WINDOW_MS / 1000, keyPrefix: 'bench' }
    const limiter = isOurs
      ? sluiceLimiter({ ...options, store: redisStore(redis) })
      : new RateLimiterRedis({ ...options, storeClient: redis })
    return createServer(async (req, res) => {
      await limiter.consume(String(req.headers[CLIENT_HEADER]))
      res.end('ok')
    })
  },
}

answer({
  /** @param {{ peer: string, isOurs: boolean, redisPort: number }} what @returns {Promise<number>} the port */
  async serve({ peer, isOurs, redisPort }) {
    const make = /** @type {(setting: Setting) => Promise<import('node:http').Server>} */ (PEERS[peer])
    const server = await make({ redis: new Redis(redisPort), isOurs })
    await new Promise((resolve) => void server.listen(0, '127.0.0.1', () => resolve(undefined)))
    return /** @type {import('node:net').AddressInfo} */ (server.address()).port
  },
  async cpuUs() {
    const { user, system } = process.cpuUsage()
    return user + system
  },
})
