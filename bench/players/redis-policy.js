// One of our policies with state in Redis, in a separate process. The packages are those of any checkout.
import { setTimeout as sleep } from 'node:timers/promises'
import { Cluster, Redis } from 'ioredis'
import { answer } from '../lib/child.js'
import { keepInFlight } from '../lib/keep-in-flight.js'
import { callInTurns } from '../lib/loop-turns.js'

/**
 * @typedef {[constructor: string, options: Record<string, unknown>]} WrittenLimit `['gcra', { limit: 5, window: '1s' }]`
 *
 * @typedef {object} Joining
 * @property {string} build the root of the checkout
 * @property {number} port of a Redis server, or of any master of a cluster
 * @property {boolean} [isCluster]
 * @property {WrittenLimit[]} limits
 * @property {Record<string, unknown>} [policy] the other options
 * @property {boolean} [waits] whether calls wait for room
 * @property {number} [blocks] other identities that are blocked
 */

const TIMEOUT = '10s'

/** @type {import('@sluice/core').Limiter<string>} */
let limiter
/** @type {(key: string) => Promise<unknown>} */
let decide

answer({
  /** @param {Joining} joining */
  async join({ build, port, isCluster = false, limits, policy = {}, waits = false, blocks = 0 }) {
    const core = await import(new URL('packages/core/dist/index.js', build).href)
    const connect = () => (isCluster ? new Cluster([{ host: '127.0.0.1', port }]) : new Redis(port))
    if (blocks > 0) await addBlocks(core, connect(), blocks)
    const store = storeOn(core, connect())
    const made = limits.map(([algorithm, options]) => core[algorithm](options))
    limiter = core.createLimiter({ name: 'bench', store, limits: made, ...policy })
    decide = waits ? (key) => limiter.acquire(key) : async (key) => limiter.consume(key)
    await store.ready()
    await limiter.consume('ready?')
    if (blocks === 0) return
    // After three looks at the index, one a second, a process knows all blocks; until then decisions read them from Redis.
    await sleep(4000)
    const { blocked } = store.stats()
    if (blocked !== blocks) throw new Error(`it knows ${blocked} blocks of ${blocks}`)
  },

  /** @param {import('../lib/keep-in-flight.js').Load} load */
  async decide(load) {
    return costOf(async () => {
      await keepInFlight(load, decide)
      return load.count
    })
  },

  /** @param {import('../lib/loop-turns.js').LoadInTurns} load */
  async decideInTurns(load) {
    return costOf(() => callInTurns(load, decide))
  },

  /** @param {{ key: string }} params */
  async hasRoom({ key }) {
    return (await limiter.peek(key)).allowed
  },
})

/** @param {() => Promise<number>} makeCalls returns how many it has made */
async function costOf(makeCalls) {
  const cpu = process.cpuUsage()
  const count = await makeCalls()
  const { user, system } = process.cpuUsage(cpu)
  return { count, cpuUs: user + system }
}

/** Earlier builds call the timeout `timeoutMs`. @param {any} core @param {Cluster | Redis} client */
function storeOn(core, client) {
  try {
    return core.redisStore(client, { timeout: TIMEOUT })
  } catch {
    return core.redisStore(client, { timeoutMs: TIMEOUT })
  }
}

/** @param {typeof import('@sluice/core')} core @param {Cluster | Redis} client @param {number} count */
async function addBlocks(core, client, count) {
  const store = storeOn(core, client)
  for (let n = 0; n < count; n++) await store.blocks.add({ key: `blocked-${n}` }, { for: '1h' })
  await store.close()
  client.disconnect()
}
