// The Redis servers under the contestants, and their costs so far.
import { Redis } from 'ioredis'
import { freePort } from '../../scripts/lib/ports.js'
import { startThrowawayRedis } from '../../scripts/lib/throwaway-redis.js'

/**
 * @typedef {object} RedisCost the costs of a server since it started
 * @property {number} calls commands that came from clients, without the measuring itself
 * @property {number} commandUs time inside these commands; what a script or transaction calls is part of it
 * @property {number} cpuUs CPU of the whole server, so reading, parsing and answering too
 */

/** Starts a server with nothing in it on a free port of 127.0.0.1. */
export async function startRedis(/** @type {string[]} */ settings = []) {
  const port = await freePort()
  const server = await startThrowawayRedis(['--port', String(port), '--bind', '127.0.0.1', ...settings])
  const admin = new Redis(port)
  return {
    port,
    admin,
    /** @returns {Promise<RedisCost>} */
    cost: () => costOf(admin),
    async usedMemory() {
      return numberIn(await admin.info('memory'), 'used_memory')
    },
    async version() {
      return /redis_version:(\S+)/.exec(await admin.info('server'))?.[1] ?? ''
    },
    async end() {
      admin.disconnect()
      await server.end()
    },
  }
}

/** @typedef {Awaited<ReturnType<typeof startRedis>>} RedisServer */

/** A node that has met no other does not know its own address, and sends clients none. */
const ANNOUNCED = ['--cluster-announce-ip', '127.0.0.1']

/**
 * A cluster of `count` masters that is ready for every slot.
 *
 * @param {import('./ending.js').Keep} keep
 * @param {number} count
 */
export async function startCluster(keep, count) {
  const masters = []
  for (let i = 0; i < count; i++) {
    const bus = await freePort()
    masters.push(keep(await startRedis(['--cluster-enabled', 'yes', '--cluster-port', String(bus), ...ANNOUNCED])))
  }
  const bound = (/** @type {number} */ i) => Math.ceil((i * 16_384) / count)
  for (const [i, { admin }] of masters.entries()) {
    await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', bound(i), bound(i + 1) - 1)
  }
  for (const { admin, port } of masters.slice(1)) {
    const bus = String(await admin.call('CONFIG', 'GET', 'cluster-port')).split(',')[1] ?? ''
    await masters[0]?.admin.call('CLUSTER', 'MEET', '127.0.0.1', port, bus)
  }
  for (const { admin } of masters) {
    const isComplete = async () => {
      const info = String(await admin.call('CLUSTER', 'INFO'))
      return info.includes('cluster_state:ok') && numberIn(info, 'cluster_known_nodes') === count
    }
    while (!(await isComplete())) await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return masters
}

/** @param {RedisServer[]} servers */
export async function costOfAll(servers) {
  const costs = await Promise.all(servers.map((server) => server.cost()))
  return costs.reduce((a, b) => ({
    calls: a.calls + b.calls,
    commandUs: a.commandUs + b.commandUs,
    cpuUs: a.cpuUs + b.cpuUs,
  }))
}

/** The commands that contestants send. Redis counts the commands inside of scripts and transactions a second time. */
const FROM_CLIENTS = /^cmdstat_(?:ping|eval|evalsha|multi|exec):calls=(\d+),usec=(\d+)/gm

/**
 * @param {Redis} admin
 * @returns {Promise<RedisCost>}
 */
async function costOf(admin) {
  let calls = 0
  let commandUs = 0
  for (const [, count, usec] of (await admin.info('commandstats')).matchAll(FROM_CLIENTS)) {
    calls += Number(count)
    commandUs += Number(usec)
  }
  const cpu = await admin.info('cpu')
  return { calls, commandUs, cpuUs: (numberIn(cpu, 'used_cpu_user') + numberIn(cpu, 'used_cpu_sys')) * 1e6 }
}

/**
 * @param {string} info
 * @param {string} field
 */
function numberIn(info, field) {
  return Number(new RegExp(`^${field}:([\\d.]+)`, 'm').exec(info)?.[1])
}
