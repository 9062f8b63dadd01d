// Contestants with state in Redis. All use ioredis and the same identities, and their own prefix before them.
// A process loads what its own contestant needs.
import { createLimiter, fixedWindow, gcra, redisStore, slidingLog, slidingWindow } from '@sluice/core'

/**
 * @typedef {{ limit: number, windowMs: number }} Rule
 *
 * @typedef {object} Player
 * @property {(key: string) => Promise<unknown>} decide what is timed: the contestant's own call, nothing around it
 * @property {(key: string, cost: number) => Promise<unknown>} [fill] charges a key as `cost` calls would
 * @property {(result: any) => boolean} [admitted] whether its result is an admission; otherwise a rejection is a refusal
 * @property {() => unknown} [close]
 *
 * @typedef {object} Contestant
 * @property {string} setup what it is configured to
 * @property {'ours' | 'peer' | 'floor'} side
 * @property {number} [strands] units that it may withhold from all clients, by design
 * @property {boolean} [autoPipelining] whether its client is set to `enableAutoPipelining`
 * @property {(redis: import('ioredis').Redis, rule: Rule) => Player | Promise<Player>} join
 */

/** @type {Record<string, Contestant>} */
export const contestants = {
  'sluice, fixed window': {
    setup: '`fixedWindow({ limit, window })` on `redisStore(redis)`',
    side: 'ours',
    join: (redis, { limit, windowMs }) => ours(redis, [fixedWindow({ limit, window: windowMs })]),
  },
  'sluice, gcra': {
    setup: '`gcra({ limit, window })` on `redisStore(redis)`',
    side: 'ours',
    join: (redis, { limit, windowMs }) => ours(redis, [gcra({ limit, window: windowMs })]),
  },
  'sluice, exact log': {
    setup: '`slidingLog({ limit, window })`, the default, on `redisStore(redis)`',
    side: 'ours',
    join: (redis, { limit, windowMs }) => ours(redis, [slidingLog({ limit, window: windowMs })]),
  },
  'sluice, exact log, deny cache off': {
    setup: 'the same on `redisStore(redis, { denyCache: false })`',
    side: 'ours',
    join: (redis, { limit, windowMs }) => ours(redis, [slidingLog({ limit, window: windowMs })], { denyCache: false }),
  },
  'sluice, exact log, leases of 100': {
    setup: "`slidingLog({ limit, window, lease: { size: 100, ttl: '1s' } })` on `redisStore(redis)`",
    side: 'ours',
    strands: 100,
    join: (redis, { limit, windowMs }) => {
      return ours(redis, [slidingLog({ limit, window: windowMs, lease: { size: 100, ttl: '1s' } })])
    },
  },
  'sluice, fixed window, kept charges': {
    setup: "`fixedWindow({ limit, window })`, `charges: { keep: '1h' }`, on `redisStore(redis)`",
    side: 'ours',
    join: (redis, { limit, windowMs }) => {
      return ours(redis, [fixedWindow({ limit, window: windowMs })], {}, { charges: { keep: '1h' } })
    },
  },
  'sluice, sliding window': {
    setup: '`slidingWindow({ limit, window })` on `redisStore(redis)`',
    side: 'ours',
    join: (redis, { limit, windowMs }) => ours(redis, [slidingWindow({ limit, window: windowMs })]),
  },
  'sluice, sliding window, leases of 100': {
    setup: "`slidingWindow({ limit, window, lease: { size: 100, ttl: '1s' } })` on `redisStore(redis)`",
    side: 'ours',
    strands: 100,
    join: (redis, { limit, windowMs }) => {
      return ours(redis, [slidingWindow({ limit, window: windowMs, lease: { size: 100, ttl: '1s' } })])
    },
  },
  'sluice, sliding window, relaxed': {
    setup: "`slidingWindow({ limit, window })`, `consistency: { syncEvery: '100ms' }`, on `redisStore(redis)`",
    side: 'ours',
    join: (redis, { limit, windowMs }) => {
      return ours(redis, [slidingWindow({ limit, window: windowMs })], {}, { consistency: { syncEvery: '100ms' } })
    },
  },
  'no decision': {
    setup: 'nothing is called: what the loop and the turns of the event loop take',
    side: 'floor',
    join: () => ({ decide: async () => undefined }),
  },
  'rate-limit-redis': {
    setup: '`increment` of its `RedisStore`, `sendCommand: (...args) => redis.call(...args)`; fixed window',
    side: 'peer',
    async join(redis, { limit, windowMs }) {
      const { RedisStore } = await import('rate-limit-redis')
      // It loads its scripts once, onto each master of a cluster.
      const masters = 'nodes' in redis ? /** @type {any} */ (redis).nodes('master') : [redis]
      const store = new RedisStore({
        async sendCommand(command, ...args) {
          if (command !== 'SCRIPT') return /** @type {Promise<any>} */ (redis.call(command, ...args))
          const replies = await Promise.all(masters.map((/** @type {any} */ node) => node.call(command, ...args)))
          return replies[0]
        },
      })
      await store.init(/** @type {import('express-rate-limit').Options} */ ({ windowMs }))
      return { decide: (key) => store.increment(key), admitted: ({ totalHits }) => totalHits <= limit }
    },
  },
  'rate-limiter-flexible': {
    setup: '`consume` of its `RateLimiterRedis`; fixed window',
    side: 'peer',
    async join(redis, { limit, windowMs }) {
      const { RateLimiterRedis } = await import('rate-limiter-flexible')
      const limiter = new RateLimiterRedis({ storeClient: redis, points: limit, duration: windowMs / 1000 })
      return { decide: (key) => limiter.consume(key) }
    },
  },
  '@fastify/rate-limit': {
    setup: '`incr` of the store it uses with `redis`; fixed window',
    side: 'peer',
    async join(redis, { limit, windowMs }) {
      const { default: RedisStore } = await import('@fastify/rate-limit/store/RedisStore.js')
      const store = new RedisStore(false, false, redis)
      return {
        decide: (key) =>
          new Promise((resolve, reject) => {
            store.incr(key, (error, result) => (error ? reject(error) : resolve(result)), windowMs, limit)
          }),
        admitted: ({ current }) => current <= limit,
      }
    },
  },
  'hono-rate-limiter': {
    setup: '`increment` of its `RedisStore`, whose four commands go to ioredis; fixed window',
    side: 'peer',
    async join(redis, { limit, windowMs }) {
      const { RedisStore } = await import('hono-rate-limiter')
      const client = {
        scriptLoad: async (/** @type {string} */ script) => String(await redis.script('LOAD', script)),
        evalsha: async (/** @type {string} */ sha, /** @type {string[]} */ keys, /** @type {any[]} */ args) =>
          /** @type {any} */ (await redis.evalsha(sha, keys.length, ...keys, ...args)),
        decr: (/** @type {string} */ key) => redis.decr(key),
        del: (/** @type {string} */ key) => redis.del(key),
      }
      const store = new RedisStore({ client })
      store.init(/** @type {any} */ ({ windowMs }))
      return { decide: (key) => store.increment(key), admitted: ({ totalHits }) => totalHits <= limit }
    },
  },
  'async-ratelimiter, koa-ratelimit': {
    setup: '`get` of async-ratelimiter, which is the Redis driver of koa-ratelimit; sorted-set log',
    side: 'peer',
    async join(redis, { limit, windowMs }) {
      const { default: SortedSetLog } = await import('async-ratelimiter')
      const limiter = new SortedSetLog({ db: redis, max: limit, duration: windowMs })
      return { decide: (id) => limiter.get({ id }), admitted: ({ remaining }) => remaining > 0 }
    },
  },
  'rolling-rate-limiter': {
    setup: '`limit` of its `IORedisRateLimiter`; sorted-set log, in a transaction',
    side: 'peer',
    async join(redis, { limit, windowMs }) {
      const { IORedisRateLimiter } = await import('rolling-rate-limiter')
      const limiter = new IORedisRateLimiter({
        // Its types are those of an older ioredis.
        client: /** @type {any} */ (redis),
        namespace: 'rolling:',
        interval: windowMs,
        maxInInterval: limit,
      })
      return { decide: (key) => limiter.limit(key), admitted: (isBlocked) => !isBlocked }
    },
  },
  'bare round trip': {
    setup: '`redis.ping()`',
    side: 'floor',
    join: (redis) => ({ decide: () => redis.ping() }),
  },
  'empty script': {
    setup: '`redis.evalsha` of `return 1`, one per decision',
    side: 'floor',
    async join(redis) {
      const sha = String(await redis.script('LOAD', 'return 1'))
      return { decide: () => redis.evalsha(sha, 0) }
    },
  },
}

// The documentation of one peer shows it. It saves work in Redis, and costs Node some.
for (const name of ['rate-limit-redis', '@fastify/rate-limit']) {
  contestants[`${name}, auto-pipelining`] = {
    .../** @type {Contestant} */ (contestants[name]),
    setup: 'the same with a client that has `enableAutoPipelining: true`',
    autoPipelining: true,
  }
}

/**
 * @param {import('ioredis').Redis | import('ioredis').Cluster} redis
 * @param {import('@sluice/core').Limit[]} limits
 * @param {Record<string, unknown>} [options] of the store
 * @param {Record<string, unknown>} [policy] beside the limits
 * @returns {Player}
 */
export function ours(redis, limits, options, policy) {
  // A long timeout, as a busy machine must not turn decisions into timeouts.
  const store = redisStore(redis, { timeout: 10_000, ...options })
  const limiter = createLimiter({ name: 'bench', store, limits, ...policy })
  return {
    decide: (key) => limiter.consume(key),
    fill: (key, cost) => limiter.consume(key, { cost }),
    admitted: ({ allowed }) => allowed,
    close: () => store.close(),
  }
}

/**
 * Throws unless the contestant admits exactly what its rule allows: a contestant that does not count is not timed.
 *
 * @param {Contestant} contestant
 * @param {import('ioredis').Redis} redis
 */
export async function checkThatItCounts(contestant, redis) {
  const limit = 120
  const { decide, admitted, close } = await contestant.join(redis, { limit, windowMs: 3_600_000 })
  const key = `check:${Math.random()}`
  const admits = async () => {
    try {
      const result = await decide(key)
      return admitted ? admitted(result) : true
    } catch (error) {
      // This is how rate-limiter-flexible refuses.
      if (error instanceof Error) throw error
      return false
    }
  }
  let count = 0
  while (count <= limit && (await admits())) count++
  if (count > limit || count < limit - (contestant.strands ?? 0)) {
    throw new Error(`admitted ${count} at a limit of ${limit}`)
  }
  await close?.()
}
