// One contestant with state in Redis, in a separate process.
import * as core from '@sluice/core'
import { Cluster, Redis } from 'ioredis'
import { checkThatItCounts, contestants, ours } from '../contestants/redis.js'
import { answer } from '../lib/child.js'
import { inFlight, keepInFlight } from '../lib/keep-in-flight.js'
import { callInTurns } from '../lib/loop-turns.js'
import { median } from '../lib/stats.js'

/**
 * @typedef {object} Joining
 * @property {number} port of a Redis server, or of any master of a cluster
 * @property {boolean} [isCluster]
 * @property {string} [name] of a contestant
 * @property {import('../contestants/redis.js').Rule} [rule] for it
 * @property {[constructor: string, options: Record<string, unknown>][]} [limits] or limits of ours, as they are
 *   written: `[['gcra', { limit: 5, window: '1s' }]]`
 */

/** @type {import('../contestants/redis.js').Player} */
let player
/** @type {Redis | Cluster} the client that was handed to it */
let client

answer({
  /** @param {Joining} joining */
  async join(joining) {
    player = await join(joining)
    await player.decide('ready?')
  },

  /** @param {Parameters<typeof keepInFlight>[0]} load */
  async decide(load) {
    const makeCalls = inFlight(load, player.decide)
    const cpu = process.cpuUsage()
    const startedMs = performance.now()
    await makeCalls()
    const seconds = (performance.now() - startedMs) / 1000
    const { user, system } = process.cpuUsage(cpu)
    return { seconds, cpuUs: user + system }
  },

  /** @param {import('../lib/loop-turns.js').LoadInTurns} load */
  async decideInTurns(load) {
    const cpu = process.cpuUsage()
    const startedMs = performance.now()
    const count = await callInTurns(load, player.decide)
    const seconds = (performance.now() - startedMs) / 1000
    const { user, system } = process.cpuUsage(cpu)
    return { count, seconds, cpuUs: user + system }
  },

  /** A contestant whose cost does not grow with its count is charged once for each key. @param {{ keys: number, cost: number }} params */
  async fill({ keys, cost }) {
    const fill = player.fill ?? player.decide
    await keepInFlight({ count: keys, inFlight: 640, keys }, (key) => fill(key, cost))
  },

  /**
   * The times of one decision and of one PING without other load, as medians in µs. They alternate, so that other load of
   * the machine affects both equally.
   *
   * @param {{ count: number, keys: number }} load
   */
  async latency({ count, keys }) {
    const taken = []
    const pings = []
    for (let i = 0; i < count; i++) {
      const startedMs = performance.now()
      await player.decide(`user:${i % keys}`)
      const decidedMs = performance.now()
      await client.ping()
      taken.push((decidedMs - startedMs) * 1000)
      pings.push((performance.now() - decidedMs) * 1000)
    }
    return { us: median(taken), pingUs: median(pings) }
  },
})

/** @param {Joining} joining */
async function join({ port, isCluster = false, name, rule = { limit: 100, windowMs: 60_000 }, limits = [] }) {
  if (name === undefined) {
    client = isCluster ? new Cluster([{ host: '127.0.0.1', port }]) : new Redis(port)
    const made = limits.map(([algorithm, options]) => /** @type {any} */ (core)[algorithm](options))
    return ours(client, made)
  }
  const contestant = contestants[name]
  if (!contestant) throw new Error(`no contestant ${name}`)
  const options = { enableAutoPipelining: contestant.autoPipelining ?? false }
  client = isCluster ? new Cluster([{ host: '127.0.0.1', port }], options) : new Redis(port, options)
  await client.ping()
  // Contestants call only methods that both have.
  const redis = /** @type {Redis} */ (client)
  if (contestant.side !== 'floor') await checkThatItCounts(contestant, redis)
  return contestant.join(redis, rule)
}
