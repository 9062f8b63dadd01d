// One small server per framework: bare, with us, and with the framework's own rate limiter. All count by the same
// header, in a minute, at a limit that is out of reach, and send their headers. Floors show the cost of waiting alone.
import { Redis } from 'ioredis'

/** @typedef {'Express' | 'Koa' | 'Fastify'} Framework */
/** @typedef {keyof typeof waits | keyof typeof ourForms | 'bare' | 'peer'} Limiter */

export const CLIENT_HEADER = 'x-client'
const LIMIT = 1000
const WINDOW_MS = 60_000

/** The limiter that “its peer” stands for. */
export const peers = {
  Express: { memory: 'express-rate-limit', redis: 'express-rate-limit + rate-limit-redis' },
  Koa: { memory: 'koa-ratelimit', redis: 'koa-ratelimit' },
  Fastify: { memory: '@fastify/rate-limit', redis: '@fastify/rate-limit' },
}

/**
 * Starts to listen and resolves with the port.
 *
 * @param {{ framework: Framework, limiter: Limiter, redisPort?: number, limit?: number }} what without `redisPort`
 *   state is in memory
 * @returns {Promise<number>}
 */
export function serve({ framework, limiter, redisPort, limit = LIMIT }) {
  const redis = redisPort === undefined ? undefined : new Redis(redisPort)
  return servers[framework](limiter, redis, limit)
}

const servers = { Express: express, Koa: koa, Fastify: fastify }

/**
 * Waits of a middleware that decides nothing and sends nothing, in place of a limiter. All requests of a turn of the event
 * loop share one wait: for the end of the turn, or for the cheapest reply of Redis, requested then.
 */
const waits = {
  turn: () => sharedByTurn(() => undefined),
  ping: (/** @type {Redis | undefined} */ redis) => sharedByTurn(() => redis?.ping()),
}

/**
 * @param {() => unknown} atItsEnd
 * @returns {() => Promise<unknown>}
 */
function sharedByTurn(atItsEnd) {
  /** @type {Promise<unknown> | undefined} */
  let turn
  return () => {
    turn ??= new Promise((resolve) => {
      setImmediate(() => {
        turn = undefined
        resolve(atItsEnd())
      })
    })
    return turn
  }
}

/** @param {Limiter} limiter @param {Redis | undefined} redis */
const waitOf = (limiter, redis) => (limiter === 'turn' || limiter === 'ping' ? waits[limiter](redis) : undefined)

/** Ours, by its options beside those that all have. */
const ourForms = {
  sluice: {},
  'sluice-skip': { skip: () => true },
  'sluice-silent': { headers: /** @type {const} */ (false) },
}

/** @param {Limiter} limiter @returns {limiter is keyof typeof ourForms} */
const isOurs = (limiter) => limiter in ourForms

/**
 * @param {keyof typeof ourForms} form
 * @param {typeof import('@sluice/core')} core
 * @param {Redis | undefined} redis
 * @param {number} limit
 */
function ourOptions(form, { redisStore }, redis, limit) {
  const store = redis && redisStore(redis, { timeout: 10_000 })
  return { name: 'bench', limit, window: WINDOW_MS, key: clientOf, ...ourForms[form], ...(store ? { store } : {}) }
}

/** @param {{ headers: import('node:http').IncomingHttpHeaders }} request */
const clientOf = ({ headers }) => String(headers[CLIENT_HEADER])

/**
 * @param {Limiter} limiter
 * @param {Redis | undefined} redis
 * @param {number} limit
 */
async function express(limiter, redis, limit) {
  const { default: express } = await import('express')
  const app = express()
  const wait = waitOf(limiter, redis)
  if (wait) app.use((_req, _res, next) => void wait().then(() => next(), next))
  if (isOurs(limiter)) {
    const core = await import('@sluice/express')
    app.use(core.rateLimit(ourOptions(limiter, core, redis, limit)))
  }
  if (limiter === 'peer') {
    const { rateLimit } = await import('express-rate-limit')
    const { RedisStore } = await import('rate-limit-redis')
    const sendCommand = (/** @type {string} */ command, /** @type {string[]} */ ...args) =>
      /** @type {Promise<any>} */ (redis?.call(command, ...args))
    const store = redis && new RedisStore({ sendCommand })
    const common = {
      windowMs: WINDOW_MS,
      limit,
      keyGenerator: clientOf,
      standardHeaders: 'draft-8',
      legacyHeaders: false,
    }
    app.use(rateLimit(/** @type {any} */ ({ ...common, ...(store ? { store } : {}) })))
  }
  app.get('/', (_req, res) => {
    res.json({ hello: 'world' })
  })
  const server = app.listen(0, '127.0.0.1')
  return portOf(server)
}

/**
 * @param {Limiter} limiter
 * @param {Redis | undefined} redis
 * @param {number} limit
 */
async function koa(limiter, redis, limit) {
  const { default: Koa } = await import('koa')
  const app = new Koa()
  const wait = waitOf(limiter, redis)
  if (wait) app.use((_ctx, next) => wait().then(next))
  if (isOurs(limiter)) {
    const core = await import('@sluice/koa')
    const { key, ...options } = ourOptions(limiter, core, redis, limit)
    app.use(core.rateLimit({ ...options, key: (ctx) => key(ctx) }))
  }
  if (limiter === 'peer') {
    const { default: ratelimit } = await import('koa-ratelimit')
    const where = redis ? { driver: 'redis', db: redis } : { driver: 'memory', db: new Map() }
    app.use(ratelimit(/** @type {any} */ ({ ...where, duration: WINDOW_MS, max: limit, id: clientOf })))
  }
  app.use((ctx) => {
    ctx.body = { hello: 'world' }
  })
  return portOf(app.listen(0, '127.0.0.1'))
}

/**
 * @param {Limiter} limiter
 * @param {Redis | undefined} redis
 * @param {number} limit
 */
async function fastify(limiter, redis, limit) {
  const { default: fastify } = await import('fastify')
  const app = fastify()
  const wait = waitOf(limiter, redis)
  if (wait) app.addHook('onRequest', (_request, _reply, done) => void wait().then(() => done(), done))
  if (isOurs(limiter)) {
    const core = await import('@sluice/fastify')
    await app.register(core.rateLimit, ourOptions(limiter, core, redis, limit))
  }
  if (limiter === 'peer') {
    // Hidden from the type checker: together with ours it would declare some names of Fastify twice.
    /** @type {string} */
    const peer = '@fastify/rate-limit'
    const { default: rateLimit } = await import(peer)
    // Room for as many clients as ours has. With less than all of them, it would forget each before its next request.
    const where = redis ? { redis } : { cache: 100_000 }
    await app.register(rateLimit, { ...where, max: limit, timeWindow: WINDOW_MS, keyGenerator: clientOf })
  }
  app.get('/', async () => ({ hello: 'world' }))
  await app.listen({ port: 0, host: '127.0.0.1' })
  return portOf(app.server)
}

/** @param {import('node:http').Server} server */
async function portOf(server) {
  if (!server.listening) await new Promise((resolve) => server.once('listening', resolve))
  return /** @type {import('node:net').AddressInfo} */ (server.address()).port
}
