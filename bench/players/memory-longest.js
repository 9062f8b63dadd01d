// One kind of state in a memory store, with every operation timed separately, repeatedly with a fresh store.

import { concurrency, createLimiter, fixedWindow, gcra, memoryStore, slidingLog, slidingWindow } from '@sluice/core'
import { BANS } from '@sluice/core/store'
import { answer } from '../lib/child.js'

const DAY_MS = 86_400_000

/** @type {Record<string, import('@sluice/core').Limit>} */
const LIMITS = {
  'fixed window': fixedWindow({ limit: 1000, window: DAY_MS }),
  gcra: gcra({ limit: 1000, window: DAY_MS }),
  'exact log': slidingLog({ limit: 20, window: DAY_MS }),
  'two counters': slidingWindow({ limit: 1000, window: DAY_MS }),
  'strict window': slidingWindow({ limit: 1000, window: DAY_MS, edge: 'strict' }),
  concurrency: concurrency({ limit: 5, ttl: DAY_MS }),
}
const BLOCKS = 'blocks'

/** The timer of the store, called by hand, so that its work is timed like the rest. @type {(() => void)[]} */
const timers = []
const noTimer = /** @type {any} */ ({ unref: () => noTimer })

/** By operation and its number: the least time of any round, in ms. @type {Map<string, number[]>} */
const least = new Map()
/** @type {Map<string, number>} */
let done = new Map()

answer({
  kinds: async () => [...Object.keys(LIMITS), BLOCKS],

  /**
   * The longest time of each operation, in ms. The collector and other programs interrupt a different operation in each
   * round, so each counts with its least time.
   *
   * @param {{ kind: string, keys: number, rounds: number }} load
   */
  async longest({ kind, keys, rounds }) {
    const { clearTimeout: clear, setTimeout: set } = globalThis
    globalThis.setTimeout = /** @type {any} */ ((/** @type {() => void} */ call) => timers.push(call) && noTimer)
    globalThis.clearTimeout = () => {}
    for (let n = 0; n < rounds; n++) await round(kind, keys)
    Object.assign(globalThis, { clearTimeout: clear, setTimeout: set })
    return Object.fromEntries([...least].map(([name, all]) => [name, all.reduce((a, b) => Math.max(a, b), 0)]))
  },
})

/**
 * @param {string} kind
 * @param {number} keys
 */
async function round(kind, keys) {
  let now = 20_000 * DAY_MS
  const store = memoryStore({ maxKeys: keys, maxBytes: 4_000_000_000, clock: () => now })
  const limiter = createLimiter({ store: timed(store), limits: [LIMITS[kind] ?? gcra({ limit: 1, window: DAY_MS })] })
  const add = (/** @type {string} */ key) =>
    kind === BLOCKS ? limiter.block(key, { for: DAY_MS }) : limiter.consume(key)
  done = new Map()
  timers.length = 0
  for (let i = 0; i < keys; i++) await add(`user:${i}`)
  // As many as the store has room for, so that each new key replaces another.
  for (let i = 0; i < keys / 10; i++) await add(`more:${i}`)
  for (let i = 0; i < keys / 10; i += 10) {
    if (kind === BLOCKS) await limiter.unblock(`user:${i}`)
    else await limiter.reset(`user:${i}`)
  }
  now += 3 * DAY_MS
  for (let n = 0; n < 200 && timers.length > 0; n++) time('sweep', /** @type {() => void} */ (timers.shift()))
  await limiter.consume('last')
  time('close', () => store.close())
}

/** @param {import('@sluice/core').Store} store @returns {import('@sluice/core').Store} */
function timed(store) {
  return {
    clock: store.clock,
    decide: (ask) => time('decide', () => store.decide(ask)),
    reset: (plan, identities) => time('reset', () => store.reset(plan, identities)),
    close: () => store.close(),
    [BANS]: {
      block: (...args) => time('block', () => store[BANS]?.block(...args)),
      unblock: (...args) => time('unblock', () => store[BANS]?.unblock(...args)),
    },
  }
}

/**
 * @template Result
 * @param {string} name
 * @param {() => Result} call
 * @returns {Result}
 */
function time(name, call) {
  const startedMs = performance.now()
  const result = call()
  const ms = performance.now() - startedMs
  const n = done.get(name) ?? 0
  done.set(name, n + 1)
  const all = least.get(name) ?? []
  least.set(name, all)
  all[n] = Math.min(all[n] ?? ms, ms)
  return result
}
