import { freePort } from '../../scripts/lib/ports.js'
import { startProxy, type Wire } from './proxy.js'
import { HOST, PortTaken, type RedisServer, startRedis } from './redis-server.js'
import { SLOTS, slotOfIdentity } from './slots.js'
import { until } from './until.js'

/** A real Redis Cluster of three masters and no replicas. */
export class RedisCluster {
  readonly masters: readonly RedisServer[]

  constructor(masters: readonly RedisServer[]) {
    this.masters = masters
  }

  /** The master that serves `slot`. */
  masterOf(slot: number): RedisServer {
    return this.masters[Math.floor((slot * this.masters.length) / SLOTS)] as RedisServer
  }

  /** The first of `prefix-0`, `prefix-1`, … that the `index`-th master serves, as a value of a kind. */
  identityOn(index: number, prefix = 'identity', kind = 'key'): string {
    for (let n = 0; ; n++) {
      const value = `${prefix}-${n}`
      if (this.masterOf(slotOfIdentity(value, kind)) === this.masters[index]) return value
    }
  }

  /** Every key of every master, with its remaining life in ms. */
  async lifetimes(): Promise<Map<string, number>> {
    const all = await Promise.all(this.masters.map((master) => master.lifetimes()))
    return new Map(all.flatMap((keys) => [...keys]))
  }

  async flush(): Promise<void> {
    await Promise.all(this.masters.map((master) => master.flush()))
  }

  async stop(): Promise<void> {
    await Promise.all(this.masters.map((master) => master.stop()))
  }
}

/** Starts three masters and makes them a cluster, in some 2 s. */
export async function startCluster(): Promise<RedisCluster> {
  const masters = await Promise.all([startMaster(), startMaster(), startMaster()])
  const cluster = new RedisCluster(masters)
  try {
    await join(cluster)
    return cluster
  } catch (error) {
    await cluster.stop()
    throw error
  }
}

/** Starts a cluster of one master that announces the address of a wire, so that its clients connect through it. */
export async function startWiredMaster(): Promise<{ wire: Wire; stop(): Promise<void> }> {
  const master = await startMaster()
  const wire = await startProxy(master.port)
  await master.call('CONFIG', 'SET', 'cluster-announce-ip', HOST)
  await master.call('CONFIG', 'SET', 'cluster-announce-port', wire.port)
  await master.call('CLUSTER', 'ADDSLOTSRANGE', 0, SLOTS - 1)
  await until('the cluster is ready', async () => (await master.fields('CLUSTER', 'INFO')).cluster_state === 'ok')
  return {
    wire,
    stop: async () => {
      await wire.stop()
      await master.stop()
    },
  }
}

/** Starts a replica of a master of a cluster, and waits until it has the master's data. */
export async function startReplica(cluster: RedisCluster, master: RedisServer): Promise<RedisServer> {
  const replica = await startMaster()
  const busPort = String(await replica.call('CONFIG', 'GET', 'cluster-port')).split(',')[1] as string
  await master.call('CLUSTER', 'MEET', HOST, replica.port, busPort)
  const id = String(await master.call('CLUSTER', 'MYID'))
  await until('the replica knows the cluster', async () => String(await replica.call('CLUSTER', 'NODES')).includes(id))
  for (const other of [replica, ...cluster.masters]) {
    await until(
      'all know each other',
      async () => (await other.fields('CLUSTER', 'INFO')).cluster_known_nodes === String(cluster.masters.length + 1),
      { withinMs: 20_000, everyMs: 20 },
    )
  }
  await replica.call('CLUSTER', 'REPLICATE', id)
  await until(
    'the replica is in sync',
    async () => (await replica.fields('INFO', 'replication')).master_link_status === 'up',
    {
      withinMs: 20_000,
      everyMs: 20,
    },
  )
  return replica
}

async function startMaster(): Promise<RedisServer> {
  for (let tries = 0; ; tries++) {
    // By default the bus listens 10,000 above the port, which was not checked to be free.
    const busPort = await freePort()
    try {
      return await startRedis({
        settings: ['cluster-enabled yes', `cluster-port ${busPort}`, 'cluster-node-timeout 5000'],
      })
    } catch (error) {
      // Another server took the port of the bus first.
      if (!(error instanceof PortTaken) || tries > 5) throw error
    }
  }
}

async function join({ masters }: RedisCluster): Promise<void> {
  const bound = (index: number) => Math.ceil((index * SLOTS) / masters.length)
  await Promise.all(
    masters.map(async (master, index) => {
      await master.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
      await master.call('CLUSTER', 'ADDSLOTSRANGE', bound(index), bound(index + 1) - 1)
    }),
  )
  const [first, ...others] = masters as [RedisServer, ...RedisServer[]]
  const meet = async () => {
    for (const other of others) {
      const busPort = String(await other.call('CONFIG', 'GET', 'cluster-port')).split(',')[1] as string
      await first.call('CLUSTER', 'MEET', '127.0.0.1', other.port, busPort)
    }
  }
  await meet()
  let metAt = performance.now()
  for (const master of masters) {
    await until(
      'every master sees the whole cluster',
      async () => {
        const info = await master.fields('CLUSTER', 'INFO')
        // A node forgets a handshake that takes longer than its timeout, as on a busy machine.
        if (performance.now() - metAt > 6000) {
          await meet()
          metAt = performance.now()
        }
        return info.cluster_state === 'ok' && info.cluster_known_nodes === String(masters.length)
      },
      { withinMs: 60_000, everyMs: 20 },
    )
  }
}
