// Apps of one framework, each with other options, in a separate process on the built packages. Reports every error that
// would have ended it, and warnings.

import { setTimeout as sleep } from 'node:timers/promises'
import {
  concurrency,
  degrade,
  delay,
  everyone,
  fixedWindow,
  memoryStore,
  queue,
  reject,
  shadow,
  slidingLog,
  tarpit,
  throttle,
} from '@sluice/core'
import { BANS } from '@sluice/core/store'
import { LATE_APPS } from '../../../http/support/late-apps.js'
import { ALL_BYTES, MOST_BYTES, PERMITS, SETUPS } from './setups.js'

/** @typedef {import('../../../http/support/app.js').AnyOptions} AnyOptions */

const framework = process.argv[2] ?? ''
const later = () => sleep(Math.random() * 8)

/** @type {string[]} */
const faults = []
for (const event of ['uncaughtException', 'unhandledRejection', 'warning']) {
  process.on(event, (what) => faults.push(`${event}: ${what?.stack ?? what}`))
}

/** A store whose calls take time, as over a network. @returns {import('@sluice/core').Store} */
function slowStore() {
  const store = memoryStore()
  return {
    decide: async (ask) => {
      await later()
      return store.decide(ask)
    },
    reset: async (plan, identities) => store.reset(plan, identities),
    [BANS]: {
      block: async (...block) => store[BANS]?.block(...block),
      unblock: async (...block) => store[BANS]?.unblock(...block),
    },
    close: () => store.close(),
  }
}

/** Fails late, once in three times. @template T @param {T} value */
async function often(value) {
  await later()
  if (Math.random() < 0.3) throw new Error('a function of the user fails')
  return value
}

/** The options of each setup beside the common ones. @type {Record<keyof typeof SETUPS, () => AnyOptions>} */
const OPTIONS = {
  reject: () => ({ respond: reject() }),
  queue: () => ({ respond: queue({ maxWait: '100ms', size: 3, maxConnections: 4 }) }),
  delay: () => ({ respond: delay({ max: '100ms', maxConnections: 4 }) }),
  tarpit: () => ({ respond: tarpit({ for: '30ms', maxConnections: 2 }) }),
  throttle: () => ({ respond: throttle({ bytesPerSecond: 50_000, after: 10 }) }),
  degrade: () => ({ respond: degrade() }),
  shadow: () => ({ respond: shadow() }),
  report: () => ({ enforce: { mode: 'report', headers: true } }),
  share: () => ({ enforce: { percent: 50 }, headers: 'legacy' }),
  counted: () => ({ count: { only: (status) => status >= 400, within: '20ms' } }),
  slow: () => ({ store: slowStore(), skip: async () => false, cost: async () => 1 }),
  failing: () => ({
    store: slowStore(),
    skip: () => often(false),
    cost: () => often(1),
    respond: reject({ body: () => often('refused') }),
    onVerdict: () => often(undefined).catch(() => {}),
  }),
}

/** @param {keyof typeof SETUPS} setup @returns {AnyOptions[]} */
const optionsOf = (setup) => [
  {
    name: 'fuzz',
    store: memoryStore(),
    key: everyone(),
    limits: [
      // Short, as the end of a handler whose client has left may never be noticed.
      concurrency({ limit: PERMITS, ttl: '150ms' }),
      slidingLog({ limit: 15, window: '50ms' }),
      fixedWindow({ limit: ALL_BYTES, window: '1d', unit: 'content-bytes' }),
    ],
    body: { max: MOST_BYTES },
    ...OPTIONS[setup](),
  },
  // A second limiter, which may still decide when the first one has cut a body off.
  { name: 'behind', key: everyone(), limit: 1_000_000, window: '1h', skip: async () => void (await later()) },
]

/** Ends new sessions of HTTP/2 that are idle for so long. */
let idleMs = 0

const factory = LATE_APPS[framework]
if (!factory) throw new Error(`expected a framework, got ${framework}`)
const apps = await Promise.all(
  Object.keys(SETUPS).map(async (setup) => {
    const app = await factory(optionsOf(/** @type {keyof typeof SETUPS} */ (setup)), later)
    // Node 20 sometimes never notices that a client of HTTP/2 has gone, limiter or none.
    app.server.on('session', (session) => session.setTimeout(idleMs, () => session.destroy()))
    await new Promise((resolve) => app.server.listen(0, '127.0.0.1', () => resolve(undefined)))
    const address = /** @type {import('node:net').AddressInfo} */ (app.server.address())
    return { setup, app, port: address.port }
  }),
)

/** @param {number} i */
async function look(i) {
  const { app } = /** @type {typeof apps[number]} */ (apps[i])
  const { limits } = await app.limiters[0].peek('everyone')
  const connections = await new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count)))
  const [permits, , bytes] = limits.map(({ remaining }) => remaining)
  return {
    ...{ connections, permits, faults },
    bytes: ALL_BYTES - Number(bytes),
    mostRead: Math.max(0, ...app.read.splice(0)),
    errors: app.errors.splice(0).map(String),
  }
}

/** What a crowd leaves open must not last; a single client is waited for, however busy the machine is. */
const IDLE_MS = { crowd: 300, single: 10_000 }

process.on('message', async (/** @type {import('./fuzzed-server.js').Order} */ { expect, app }) => {
  if (expect !== undefined) {
    idleMs = IDLE_MS[expect]
    await apps[app]?.app.limiters[0].reset('everyone')
  }
  process.send?.(await look(app))
})
// The process ends with the test.
process.once('disconnect', () => process.exit())
process.send?.(apps.map(({ port }) => port))
