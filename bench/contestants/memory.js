// Contestants with state in this process. A process loads what its own contestant needs.
import { createLimiter, fixedWindow, gcra, memoryStore, slidingLog, slidingWindow } from '@sluice/core'

/**
 * @typedef {{ limit: number, windowMs: number, maxKeys: number }} Rule
 *
 * @typedef {object} Player
 * @property {(key: string) => unknown} decide what is timed; awaited, as its users have to
 * @property {(result: any) => boolean} [admitted] whether its result is an admission; otherwise a rejection is a refusal
 *
 * @typedef {object} Contestant
 * @property {string} setup
 * @property {'ours' | 'peer' | 'floor'} side
 * @property {(rule: Rule) => Player | Promise<Player>} join
 */

/** @type {Record<string, Contestant>} */
export const contestants = {
  'sluice, fixed window': {
    setup: '`fixedWindow` on `memoryStore({ maxKeys })`, through `consume`',
    side: 'ours',
    join: ({ limit, windowMs, maxKeys }) => ours(fixedWindow({ limit, window: windowMs }), maxKeys),
  },
  'sluice, gcra': {
    setup: '`gcra`, likewise',
    side: 'ours',
    join: ({ limit, windowMs, maxKeys }) => ours(gcra({ limit, window: windowMs }), maxKeys),
  },
  'sluice, exact log': {
    setup: '`slidingLog`, the default, likewise',
    side: 'ours',
    join: ({ limit, windowMs, maxKeys }) => ours(slidingLog({ limit, window: windowMs }), maxKeys),
  },
  'sluice, sliding window': {
    setup: '`slidingWindow`, two counters, likewise',
    side: 'ours',
    join: ({ limit, windowMs, maxKeys }) => ours(slidingWindow({ limit, window: windowMs }), maxKeys),
  },
  'express-rate-limit': {
    setup: '`increment` of its `MemoryStore`; fixed window',
    side: 'peer',
    async join({ limit, windowMs }) {
      const { MemoryStore } = await import('express-rate-limit')
      const store = new MemoryStore()
      store.init(/** @type {any} */ ({ windowMs }))
      return { decide: (key) => store.increment(key), admitted: ({ totalHits }) => totalHits <= limit }
    },
  },
  'rate-limiter-flexible': {
    setup: '`consume` of its `RateLimiterMemory`; fixed window',
    side: 'peer',
    async join({ limit, windowMs }) {
      const { RateLimiterMemory } = await import('rate-limiter-flexible')
      const limiter = new RateLimiterMemory({ points: limit, duration: windowMs / 1000 })
      return { decide: (key) => limiter.consume(key) }
    },
  },
  '@fastify/rate-limit': {
    setup: '`incr` of its `LocalStore` with `cache` at the number of keys; fixed window',
    side: 'peer',
    async join({ limit, windowMs, maxKeys }) {
      const { default: LocalStore } = await import('@fastify/rate-limit/store/LocalStore.js')
      const store = new LocalStore(false, false, maxKeys)
      let hits = 0
      const record = (/** @type {Error | null} */ _error, /** @type {{ current: number }} */ { current }) => {
        hits = current
      }
      return {
        decide(key) {
          store.incr(key, record, windowMs, limit)
          return hits
        },
        admitted: (current) => current <= limit,
      }
    },
  },
  'hono-rate-limiter': {
    setup: '`increment` of its `MemoryStore`; fixed window',
    side: 'peer',
    async join({ limit, windowMs }) {
      const { MemoryStore } = await import('hono-rate-limiter')
      const store = new MemoryStore()
      store.init(/** @type {any} */ ({ windowMs }))
      return { decide: (key) => store.increment(key), admitted: ({ totalHits }) => totalHits <= limit }
    },
  },
  'koa-ratelimit': {
    setup: '`get` of its memory driver, made anew for each request as it does; fixed window',
    side: 'peer',
    async join({ limit, windowMs }) {
      const { default: MemoryLimiter } = await import('koa-ratelimit/limiter/memory.js')
      const db = new Map()
      return {
        decide: (id) => new MemoryLimiter({ id, db, max: limit, duration: windowMs }).get(),
        admitted: ({ remaining }) => remaining > 0,
      }
    },
  },
  'rolling-rate-limiter': {
    setup: '`limit` of its `InMemoryRateLimiter`; exact log, a timer per key',
    side: 'peer',
    async join({ limit, windowMs }) {
      const { InMemoryRateLimiter } = await import('rolling-rate-limiter')
      const limiter = new InMemoryRateLimiter({ interval: windowMs, maxInInterval: limit })
      return { decide: (key) => limiter.limit(key), admitted: (isBlocked) => !isBlocked }
    },
  },
  'bare Map, fixed window': {
    setup: 'a `Map` from key to count and end of the window, and the clock read once; it never forgets a key',
    side: 'floor',
    join: ({ limit, windowMs }) => mapOfWindows(limit, windowMs),
  },
}

/**
 * @param {import('@sluice/core').Limit} limit
 * @param {number} maxKeys
 * @returns {Player}
 */
function ours(limit, maxKeys) {
  const limiter = createLimiter({ name: 'bench', store: memoryStore({ maxKeys: maxKeys + 10 }), limits: [limit] })
  return { decide: (key) => limiter.consume(key), admitted: ({ allowed }) => allowed }
}

/**
 * The least work of a fixed window: find the key, check whether its window has ended, count, compare, and return the result.
 *
 * @param {number} limit
 * @param {number} windowMs
 * @returns {Player}
 */
function mapOfWindows(limit, windowMs) {
  /** @type {Map<string, { count: number, end: number }>} */
  const windows = new Map()
  return {
    decide(key) {
      const now = Date.now()
      let window = windows.get(key)
      if (window === undefined) {
        window = { count: 0, end: now + windowMs }
        windows.set(key, window)
      } else if (window.end <= now) {
        window.count = 0
        window.end = now + windowMs
      }
      const allowed = window.count < limit
      if (allowed) window.count++
      return {
        allowed,
        remaining: limit - window.count,
        retryAfterMs: allowed ? 0 : window.end - now,
        resetAfterMs: window.end - now,
      }
    },
    admitted: ({ allowed }) => allowed,
  }
}

/**
 * Throws unless the contestant admits exactly what its rule allows.
 *
 * @param {Contestant} contestant
 */
export async function checkThatItCounts(contestant) {
  const limit = 20
  const { decide, admitted } = await contestant.join({ limit, windowMs: 60_000, maxKeys: 100 })
  let count = 0
  const admits = async () => {
    try {
      const result = await decide('check')
      return admitted ? admitted(result) : true
    } catch (error) {
      // This is how rate-limiter-flexible refuses.
      if (error instanceof Error) throw error
      return false
    }
  }
  while (count <= limit && (await admits())) count++
  if (count !== limit) throw new Error(`admitted ${count} at a limit of ${limit}`)
}
