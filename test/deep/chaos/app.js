// One process of a service under load, on the built package as users get it. It calls all its limiters every few ms,
// and writes each verdict to a file at once, so that none is lost when the process is killed. The format is
// `limiter key kind allowed from to late`. `from` and `to` are in ms, by the clock that all processes of the machine share.
// `late` is the time for which this process was not scheduled.
import { openSync, readSync, writeSync } from 'node:fs'
import { concurrency, createLimiter, fixedWindow, gcra, redisStore, slidingLog } from '@sluice/core'
import * as ioredis from 'ioredis'
import * as redis from 'redis'
import { BURST, LEASE, LEDGER, LIMIT, PERMITS, PERMITS_TTL_MS, TIMEOUT_MS, WINDOW_MS } from './limits.js'

/**
 * @typedef {'ioredis' | 'redis'} Kind
 * @typedef {{ kind: Kind, ports: number[], how: 'single' | 'cluster' | 'sentinel', name?: string }} Way
 * @typedef {{ file: string, way: Way, everyMs: number, keys: string[], share: number, clock?: string }} Setup
 */

/** @type {Setup} */
const { file, way, everyMs, keys, share, clock } = JSON.parse(process.argv[2] ?? '{}')
const log = openSync(file, 'a')
const now = () => Number(process.hrtime.bigint()) / 1e6

const client = connect(way)
client.on('error', () => {})
const store = redisStore(client, { timeout: TIMEOUT_MS, ...(clock && { clock: steppedClock(clock) }) })

/** The clock that all processes share, with the offset in a file. @param {string} file */
function steppedClock(file) {
  const shift = openSync(file, 'r')
  const ms = new Float64Array(1)
  return () => {
    readSync(shift, ms, 0, ms.byteLength, 0)
    return Math.floor(now()) + 1e12 + /** @type {number} */ (ms[0])
  }
}

const limits = {
  log: slidingLog({ limit: LIMIT, window: WINDOW_MS }),
  bucket: gcra({ limit: LIMIT, window: WINDOW_MS, burst: BURST }),
  leased: slidingLog({ limit: LIMIT, window: WINDOW_MS, lease: LEASE }),
  ledger: fixedWindow({ limit: LEDGER, window: '1h', anchor: 'first-request' }),
  permits: concurrency({ limit: PERMITS, ttl: PERMITS_TTL_MS }),
}
/** @param {keyof typeof limits} name */
const limiterOf = (name) => createLimiter({ name, store, limits: [limits[name]], unavailable: { share } })
const limiters = {
  log: limiterOf('log'),
  bucket: limiterOf('bucket'),
  leased: limiterOf('leased'),
  ledger: limiterOf('ledger'),
  permits: limiterOf('permits'),
}

/** @param {Way} way @returns {any} */
function connect({ kind, ports, how, name }) {
  const nodes = ports.map((port) => ({ host: '127.0.0.1', port }))
  if (kind === 'ioredis') {
    if (how === 'cluster') return new ioredis.Cluster(nodes)
    return new ioredis.Redis(how === 'sentinel' ? { sentinels: nodes, name: name ?? '' } : { port: ports[0] })
  }
  const urls = ports.map((port) => ({ url: `redis://127.0.0.1:${port}` }))
  const made = how === 'cluster' ? redis.createCluster({ rootNodes: urls }) : redis.createClient(urls[0])
  made.connect().catch(() => {})
  return made
}

/** @type {string[]} */
const faults = []
process.on('unhandledRejection', (reason) => faults.push(`unhandled: ${reason}`))

let asked = 0
let answered = 0
let lateMs = 0
let held = 0
let isResting = false

/** @param {keyof typeof limiters} name @param {number} key */
async function ask(name, key) {
  const lateBefore = lateMs
  asked++
  const from = now()
  try {
    const verdict = await limiters[name].consume(keys[key] ?? '')
    const to = now()
    noteLate(to)
    const allowed = verdict.allowed ? 1 : 0
    writeSync(log, `${name} ${key} ${verdict.kind} ${allowed} ${from} ${to} ${(lateMs - lateBefore).toFixed(1)}\n`)
    if (name === 'permits' && verdict.allowed) hold(verdict, key, to)
    return { kind: verdict.kind, to }
  } catch (error) {
    faults.push(`${name}: ${error}`)
    return { kind: 'failed', to: now() }
  } finally {
    answered++
  }
}

/** @param {import('@sluice/core').Verdict} verdict @param {number} key @param {number} since */
function hold(verdict, key, since) {
  held++
  setTimeout(
    () => {
      held--
      // Written before the release, so that the permit is in flight until then at most.
      if (verdict.kind === 'decided') writeSync(log, `freed ${key} ${since} ${now()}\n`)
      limiters.permits.release(verdict).catch((error) => faults.push(`release: ${error}`))
    },
    10 + 20 * Math.random(),
  )
}

/** The limiters under constant load, beside `permits`. */
const LOADED = /** @type {const} */ (['log', 'bucket', 'leased', 'ledger'])
let next = 0
let lastTick = now()
/** Adds the delay of a tick, for which this process was not scheduled. @param {number} at */
function noteLate(at) {
  const late = at - lastTick - everyMs - 1
  if (late > 0) {
    lateMs += late
    lastTick = at - everyMs
  }
}
setInterval(() => {
  const at = now()
  noteLate(at)
  lastTick = at
  if (isResting) return
  const key = next++ % keys.length
  for (const name of LOADED) void ask(name, key)
  if (held < 3) void ask('permits', key)
}, everyMs).unref()

/** @type {Record<string, (message: any) => unknown>} */
const orders = {
  /** Makes one decision on each key, and returns whether the store made it. */
  probe: () => Promise.all(keys.map((_, key) => ask('ledger', key))),
  memory: () => {
    global.gc?.()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  },
  /** Stops the load, and waits for requests in flight. */
  async rest() {
    isResting = true
    const until = now() + 5000
    while ((answered < asked || held > 0) && now() < until) await new Promise((resolve) => setTimeout(resolve, 5))
    return { asked, unanswered: asked - answered, faults }
  },
  goOn: () => {
    isResting = false
  },
  /** The count of the store in the ledger of each key, and the free permits. */
  counts: () =>
    Promise.all(
      keys.map(async (key) => {
        const [ledger, permits] = await Promise.all([limiters.ledger.peek(key), limiters.permits.peek(key)])
        return { ledger: LEDGER - ledger.remaining, freePermits: permits.remaining, kind: ledger.kind }
      }),
    ),
  stop: () => store.close(),
}

process.on('message', async (/** @type {any} */ message) => {
  const answer = await orders[message.order]?.(message)
  process.send?.({ id: message.id, answer }, () => {
    // The store must not keep the process alive.
    if (message.order === 'stop') end()
  })
})

function end() {
  process.removeAllListeners('disconnect')
  process.disconnect()
  if (way.kind === 'ioredis') client.disconnect()
  else client.destroy()
}
// The process ends with the test.
process.once('disconnect', () => process.exit())
process.send?.('started')
