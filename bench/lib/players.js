// The contestants of a measurement with Redis: each in its own process, all on the same server, one at a time.
import { startChild } from './child.js'
import { costOfAll } from './redis.js'

/** @typedef {import('./child.js').Child} Child */

/**
 * @typedef {object} Joined
 * @property {string} label
 * @property {Child} child
 * @property {import('./redis.js').RedisServer[]} servers
 * @property {() => Promise<void>} end
 */

/**
 * @param {string} label
 * @param {import('./redis.js').RedisServer[]} servers one, or the masters of a cluster
 * @param {Omit<import('../players/redis.js').Joining, 'port'>} joining
 * @returns {Promise<Joined>}
 */
export async function join(label, servers, joining) {
  const child = startChild(new URL('../players/redis.js', import.meta.url))
  try {
    await child.call('join', { port: servers[0]?.port, ...joining })
  } catch (error) {
    await child.end()
    throw new Error(`${label}: ${error instanceof Error ? error.message : error}`, { cause: error })
  }
  return { label, child, servers, end: child.end }
}

/**
 * Contestants by their names, and the reasons of those that cannot join because this version lacks an option.
 *
 * @param {import('./ending.js').Keep} keep
 * @param {readonly string[]} names
 * @param {import('./redis.js').RedisServer | import('./redis.js').RedisServer[]} servers one, or the masters of a cluster
 * @param {import('../contestants/redis.js').Rule} rule
 */
export async function joinAll(keep, names, servers, rule) {
  const isCluster = Array.isArray(servers)
  const all = isCluster ? servers : [servers]
  const asked = await Promise.allSettled(names.map((name) => join(name, all, { name, rule, isCluster })))
  const joined = asked.flatMap((answer) => (answer.status === 'fulfilled' ? [keep(answer.value)] : []))
  const missing = []
  for (const [i, answer] of asked.entries()) {
    if (answer.status === 'fulfilled') continue
    if (!/no such option/.test(String(answer.reason))) throw answer.reason
    missing.push(`${names[i]}: left out, this version has no such option`)
  }
  return { joined, missing }
}

/**
 * Decisions by one or several players at once, and the cost of each.
 *
 * @param {readonly Joined[]} players on the same servers
 * @param {Parameters<typeof import('./keep-in-flight.js').keepInFlight>[0]} load for each
 */
export async function decide(players, load) {
  const servers = players[0]?.servers ?? []
  const before = await costOfAll(servers)
  const startedMs = performance.now()
  const costs = await Promise.all(players.map(({ child }) => child.call('decide', load)))
  const seconds = players.length === 1 ? costs[0].seconds : (performance.now() - startedMs) / 1000
  const after = await costOfAll(servers)
  const cpuUs = costs.reduce((sum, cost) => sum + cost.cpuUs, 0)
  return costEach({ count: load.count * players.length, seconds, cpuUs }, before, after)
}

/**
 * Decisions by one player for some time, with turns of the event loop between them, and the cost of each.
 *
 * @param {Joined} player
 * @param {import('./loop-turns.js').LoadInTurns} load
 */
export async function decideInTurns({ child, servers }, load) {
  const before = await costOfAll(servers)
  const spent = await child.call('decideInTurns', load)
  return costEach(spent, before, await costOfAll(servers))
}

/**
 * @param {{ count: number, seconds: number, cpuUs: number }} spent
 * @param {import('./redis.js').RedisCost} before
 * @param {import('./redis.js').RedisCost} after
 */
function costEach({ count, seconds, cpuUs }, before, after) {
  return {
    perSecond: count / seconds,
    nodeUs: cpuUs / count,
    commandUs: (after.commandUs - before.commandUs) / count,
    redisUs: (after.cpuUs - before.cpuUs) / count,
    calls: (after.calls - before.calls) / count,
  }
}

/** @param {import('./redis.js').RedisServer[]} servers */
export async function flush(servers) {
  for (const { admin } of servers) await admin.flushall()
}
