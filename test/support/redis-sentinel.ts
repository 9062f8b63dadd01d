import { HOST, type RedisServer, startRedis } from './redis-server.js'
import { until } from './until.js'

/** How long a master has to be silent before its sentinels consider it down, in ms. */
const DOWN_AFTER_MS = 500

export interface SentinelOptions {
  /** @default 1 */
  readonly replicas?: number
  /** Odd, so that they can reach a majority. @default 3 */
  readonly sentinels?: number
}

/** A real master with replicas, watched by real sentinels. */
export class RedisSentinels {
  readonly name = 'main'
  readonly servers: readonly RedisServer[]
  readonly sentinels: readonly RedisServer[]

  constructor(servers: readonly RedisServer[], sentinels: readonly RedisServer[]) {
    this.servers = servers
    this.sentinels = sentinels
  }

  /** The server that all sentinels consider the master. */
  async master(): Promise<RedisServer> {
    return until('the sentinels agree on a master', async () => {
      const ports = await Promise.all(
        this.sentinels.map(async (sentinel) => {
          const address = (await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.name)) as [string, string]
          return Number(address[1])
        }),
      )
      return new Set(ports).size === 1 && this.servers.find(({ port }) => port === ports[0])
    })
  }

  /** Kills or stops the master, and waits until a replica is promoted and all sentinels know it. */
  async failOver(signal: 'SIGKILL' | 'SIGSTOP' = 'SIGKILL'): Promise<RedisServer> {
    const old = await this.master()
    old.kill(signal)
    return until(
      'a replica is promoted',
      async () => {
        const master = await this.master()
        return master !== old && (await master.fields('INFO', 'replication')).role === 'master' && master
      },
      { withinMs: 30_000, everyMs: 50 },
    )
  }

  async stop(): Promise<void> {
    // Sentinels first, so that they do not start a failover.
    await Promise.all(this.sentinels.map((sentinel) => sentinel.stop()))
    await Promise.all(this.servers.map((server) => server.stop()))
  }
}

/** Starts one master, its replicas and their sentinels, and waits until they know each other, in some 3 s. */
export async function startSentinels({ replicas = 1, sentinels = 3 }: SentinelOptions = {}): Promise<RedisSentinels> {
  // A replica would otherwise wait 5 s for more replicas before its first copy begins.
  const diskless = ['repl-diskless-sync-delay 0']
  const master = await startRedis({ settings: diskless })
  const started: RedisServer[] = [master]
  const watchers: RedisServer[] = []
  const all = new RedisSentinels(started, watchers)
  try {
    const following = [...diskless, `replicaof ${HOST} ${master.port}`]
    const followers = Array.from({ length: replicas }, () => startRedis({ settings: following }))
    started.push(...(await Promise.all(followers)))
    for (const replica of started.slice(1)) await until('the replica follows', () => follows(replica))

    const watching = Array.from({ length: sentinels }, () => startSentinel(all.name, master.port, sentinels))
    watchers.push(...(await Promise.all(watching)))
    for (const sentinel of watchers) await until('the sentinels know each other', () => knows(sentinel, all))
    return all
  } catch (error) {
    await all.stop()
    throw error
  }
}

function startSentinel(name: string, masterPort: number, of: number): Promise<RedisServer> {
  const quorum = Math.floor(of / 2) + 1
  return startRedis({
    sentinel: true,
    settings: [
      `sentinel monitor ${name} ${HOST} ${masterPort} ${quorum}`,
      `sentinel down-after-milliseconds ${name} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${name} 3000`,
      `sentinel parallel-syncs ${name} 1`,
    ],
  })
}

async function follows(replica: RedisServer): Promise<boolean> {
  return (await replica.fields('INFO', 'replication')).master_link_status === 'up'
}

async function knows(sentinel: RedisServer, { name, servers, sentinels }: RedisSentinels): Promise<boolean> {
  const flat = (await sentinel.call('SENTINEL', 'MASTER', name)) as string[]
  const field = (key: string) => Number(flat[flat.indexOf(key) + 1])
  return field('num-slaves') === servers.length - 1 && field('num-other-sentinels') === sentinels.length - 1
}
