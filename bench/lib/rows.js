// Rows of `npm run bench:against`, with the CPU time of a decision or a request in µs, by process.
import { startChild } from './child.js'
import { flush } from './players.js'
import { costOfAll } from './redis.js'

/**
 * @typedef {object} World
 * @property {string} build the root of the checkout whose packages are measured, for players that take them from there
 * @property {(name: string) => URL} player one of that checkout's own players
 * @property {() => Promise<import('./redis.js').RedisServer>} redis
 * @property {() => Promise<import('./redis.js').RedisServer[]>} cluster its masters
 * @property {() => Promise<import('./child.js').Child>} loader
 *
 * @typedef {Record<string, number>} Costs
 *
 * @typedef {object} Row
 * @property {string} name
 * @property {(keep: import('./ending.js').Keep, world: World) => Promise<Costs>} costsUs
 */

/**
 * Decisions before those that are measured, but no more than ten for each of them. V8 goes on to compile for some 250,000: the first
 * 30,000 take four times as much as later ones. A server has had them within minutes; `npm run bench` measures starts.
 */
const WARM_UP = 300_000

/** Players of this checkout with the packages of either: an earlier one may not have them. */
const ownPlayer = (/** @type {string} */ name) => new URL(`../players/${name}.js`, import.meta.url)

/** With thousands of bans in the first second of a process, commits of November 2026 warn that Redis lost some. */
const WITHOUT_WARNING = ['--disable-warning=SLUICE_BLOCKS_RESTORED']

/** @param {number} us @returns {Costs} */
const nodeAlone = (us) => ({ 'Node CPU': us })

/**
 * @typedef {Pick<import('../players/redis-policy.js').Joining, 'limits' | 'policy' | 'waits' | 'blocks'>} Policy
 *
 * @typedef {object} RedisLoad
 * @property {number} [inFlight]
 * @property {number} [perSecond] or how many are due in a second, each ms some
 * @property {number} keys
 * @property {boolean} [isZipf]
 * @property {number} [count] decisions, on keys that had none before: others have had everything compiled
 * @property {number} [inTurnsMs] or for how long, in turns of the event loop, on the same keys as before: leases and exchanges go by
 *   time
 * @property {boolean} [onCluster]
 * @property {boolean} [refuses] whether there is no room in the end
 * @property {boolean} [anotherWaits] whether a request waits for another key, in another process
 */

/** A policy on Redis. @param {string} what @param {Policy & RedisLoad} load @returns {Row} */
export const redisRow = (
  what,
  { inFlight, perSecond, keys, isZipf, count = 30_000, inTurnsMs, onCluster, refuses = false, anotherWaits, ...policy },
) => ({
  name: `${onCluster ? 'cluster of 3' : 'redis'}: ${what}, ${perSecond ? `${perSecond} a second` : `${inFlight} in flight`}, ${keys} keys`,
  async costsUs(keep, world) {
    const servers = onCluster ? await world.cluster() : [await world.redis()]
    await flush(servers)
    if (anotherWaits) await servers[0]?.admin.set('sluice:v1:blocked:waiting', '', 'EX', 3600)
    const child = keep(startChild(ownPlayer('redis-policy'), WITHOUT_WARNING))
    await child.call('join', { build: world.build, port: servers[0]?.port, isCluster: onCluster, ...policy })
    const load = { inFlight, perSecond, keys, isZipf }
    const decide = (/** @type {number} */ share, prefix = 'user:') =>
      inTurnsMs === undefined
        ? child.call('decide', { ...load, count, prefix })
        : child.call('decideInTurns', { ...load, ms: inTurnsMs * share })
    await decide(Math.max(1, Math.min(10, WARM_UP / count)), 'earlier:')
    const before = await costOfAll(servers)
    const spent = await decide(1)
    const after = await costOfAll(servers)
    // A player that does not decide as the row says is not timed.
    const hasRoom = await child.call('hasRoom', { key: 'user:1' })
    if (!policy.waits && hasRoom === refuses) throw new Error(`${what}: ${hasRoom ? 'has room' : 'refuses'} in the end`)
    return {
      'Node CPU': spent.cpuUs / spent.count,
      'Redis CPU': (after.cpuUs - before.cpuUs) / spent.count,
    }
  },
})

/** @param {import('../contestants/http.js').Framework} framework @param {'memory' | 'redis'} where @returns {Row} */
export const httpRow = (framework, where) => ({
  name: `http: ${framework}, ${where}`,
  async costsUs(keep, { player, redis, loader }) {
    const child = keep(startChild(player('http-server')))
    const [{ admin, port: redisPort }, load] = [await redis(), await loader()]
    await admin.flushall()
    const ask = { framework, limiter: 'sluice', ...(where === 'redis' ? { redisPort } : {}) }
    const port = await child.call('serve', ask)
    await load.call('send', { port, connections: 100, amount: 0, seconds: 2 })
    await admin.flushall()
    const before = await child.call('cpuUs')
    const { requests } = await load.call('send', { port, connections: 100, amount: 0, seconds: 1 })
    return nodeAlone(((await child.call('cpuUs')) - before) / requests)
  },
})

/** @param {string} name @param {number} clients @returns {Row} */
export const waitersRow = (name, clients) => ({
  name: `waiting: one comes and one leaves, 1,000 wait, ${name}`,
  async costsUs(keep, { build }) {
    const child = keep(startChild(ownPlayer('waiters')))
    await child.call('join', { build, count: 1000, clients })
    await child.call('exchange', { count: 4000 })
    return nodeAlone(await child.call('exchange', { count: 4000 }))
  },
})

/** @param {'plain' | 'odd'} spelling @returns {Row} */
export const pathsRow = (spelling) => ({
  name: `policies: paths in ${spelling} spellings`,
  async costsUs(keep, { build }) {
    const child = keep(startChild(ownPlayer('paths')))
    await child.call('join', { build })
    await child.call('decide', { count: 500_000, spelling })
    return nodeAlone(await child.call('decide', { count: 1_000_000, spelling }))
  },
})
