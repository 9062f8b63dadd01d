import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startProxy, type Wire } from '../../support/proxy.js'
import { type RedisCluster, startCluster } from '../../support/redis-cluster.js'
import { type RedisSentinels, startSentinels } from '../../support/redis-sentinel.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'
import type { Way } from './app.js'
import { App, type Count, commonNow } from './apps.js'

import { type Judgement, judge, type Loss } from './judge.js'
import { ASKED_EVERY_MS, PERMITS, PERMITS_TTL_MS } from './limits.js'

/** The time within which the store has to decide again after an outage. */
export const RETURN_WITHIN_MS = 2000

export type Topology = 'single' | 'cluster' | 'sentinel'

export interface WorldOptions {
  readonly topology?: Topology
  readonly settings?: readonly string[]
  /** The number of processes, alternately on `ioredis` and `redis`. */
  readonly apps: number
  /** Whether the stores read a common clock that `stepClock` steps. */
  readonly clock?: boolean
  /** The pause between two rounds of requests of a process. @default 5 */
  readonly everyMs?: number
}

/** The results of a world after its end. */
export interface Outcome extends Judgement {
  /** The time until the store decided again, in ms, for each process and each outage. */
  readonly returns: readonly number[]
  readonly unanswered: number
  readonly faults: readonly string[]
  /** Processes that ended although the scenario did not kill them. */
  readonly exits: readonly string[]
  readonly kills: number
  /** The number of keys sampled, and those without an expiry. */
  readonly keysSeen: number
  readonly keysForEver: readonly string[]
  /** Charges of the ledger in the store less those reported to clients, by key: below 0 where some were lost. */
  readonly ledgerBeyond: readonly number[]
  /** The number of times the store may have lost data. */
  readonly losses: number
  /** Permits that are still taken when no request holds one. */
  readonly permitsLost: number
}

/** Real Redis servers, real processes under load, and faults between them. */
export class World {
  readonly servers: readonly RedisServer[]
  readonly cluster: RedisCluster | undefined
  readonly sentinels: RedisSentinels | undefined
  readonly wire: Wire | undefined
  /** The running processes. */
  readonly apps: App[] = []
  readonly identities: readonly string[]
  readonly #options: WorldOptions
  readonly #everyone: App[] = []
  readonly #dir = mkdtempSync(join(tmpdir(), 'sluice-chaos-'))
  readonly #clock: SharedClock | undefined
  readonly #losses: Loss[] = []
  readonly #returns: number[] = []
  readonly #keysForEver = new Set<string>()
  #keysSeen = 0
  #sampler: Promise<void> | undefined
  #isOver = false
  #started = 0
  #kills = 0

  private constructor(
    options: WorldOptions,
    parts: { servers: readonly RedisServer[]; cluster?: RedisCluster; sentinels?: RedisSentinels; wire?: Wire },
  ) {
    this.#options = options
    if (options.clock) this.#clock = new SharedClock(join(this.#dir, 'clock'))
    this.servers = parts.servers
    this.cluster = parts.cluster
    this.sentinels = parts.sentinels
    this.wire = parts.wire
    const { cluster } = parts
    this.identities = cluster ? cluster.masters.map((_, i) => cluster.identityOn(i)) : ['all']
  }

  static async start(options: WorldOptions): Promise<World> {
    const world = new World(options, await startServers(options))
    try {
      await Promise.all(Array.from({ length: options.apps }, () => world.startApp()))
      await world.untilDecided()
      world.#sampler = world.#sample()
      return world
    } catch (error) {
      await world.destroy()
      throw error
    }
  }

  /** The only server, or the configured master. */
  get server(): RedisServer {
    return this.servers[0] as RedisServer
  }

  async startApp(): Promise<App> {
    const n = this.#started++
    const { apps, everyMs = ASKED_EVERY_MS } = this.#options
    const setup = { everyMs, clock: this.#clock?.file, keys: [...this.identities], share: 1 / apps }
    const app = await App.start({ ...setup, file: join(this.#dir, String(n)), way: this.#way(n) })
    this.#everyone.push(app)
    this.apps.push(app)
    return app
  }

  async killApp(app: App): Promise<void> {
    this.apps.splice(this.apps.indexOf(app), 1)
    this.#kills++
    await app.kill()
  }

  /** Steps the common clock of all stores, after all requests by the old time have ended. */
  async stepClock(ms: number): Promise<void> {
    await Promise.all(this.apps.map((app) => app.rest()))
    const step = async () => this.#clock?.step(ms)
    // A step forward returns units early, once. A step back adds no room.
    await (ms > 0 ? this.losing(step) : step())
    await Promise.all(this.apps.map((app) => app.goOn()))
  }

  /** Runs an operation that may make the store lose its data, after which each limit may be admitted once more. */
  async losing<T>(lose: () => Promise<T>): Promise<T> {
    const from = commonNow()
    const result = await lose()
    this.#losses.push([from, commonNow()])
    return result
  }

  /** Call it when the store is back: records the time that each process takes to notice. */
  async isBack(): Promise<void> {
    const since = commonNow()
    const returned = await this.untilDecided()
    this.#returns.push(...returned.map((at) => Math.max(0, at - since)))
  }

  /** Waits until the store makes every decision of every process, and returns since when. */
  untilDecided(withinMs = 3 * RETURN_WITHIN_MS): Promise<number[]> {
    return Promise.all(
      this.apps.map((app) =>
        until(
          'the store decides',
          async () => {
            const probes = await app.probe()
            return probes.every(({ kind }) => kind === 'decided') && Math.max(...probes.map(({ to }) => to))
          },
          { withinMs },
        ),
      ),
    )
  }

  /** Ends the load, and returns its results. */
  async end(): Promise<Outcome> {
    const rests = await Promise.all(this.apps.map((app) => app.rest()))
    const counts = await this.#finalCounts()
    await Promise.all(this.apps.map((app) => app.stop()))
    this.#isOver = true
    await this.#sampler
    const judgement = judge(this.#everyone, this.#losses, 1 / this.#options.apps)
    return {
      ...judgement,
      returns: this.#returns,
      unanswered: rests.reduce((sum, { unanswered }) => sum + unanswered, 0),
      faults: rests.flatMap(({ faults }) => faults),
      exits: this.#everyone.flatMap(({ exit }) => exit ?? []),
      kills: this.#kills,
      keysSeen: this.#keysSeen,
      keysForEver: [...this.#keysForEver],
      ledgerBeyond: counts.map(({ ledger }, key) => ledger - (judgement.ledger.get(String(key)) ?? 0)),
      losses: this.#losses.length,
      permitsLost: counts.reduce((sum, { freePermits }) => sum + PERMITS - freePermits, 0),
    }
  }

  /** The counts in the store once no permit is held, not even of a process that died or could not release it. */
  async #finalCounts(): Promise<readonly Count[]> {
    const app = this.apps[0] as App
    const lapsedAt = performance.now() + PERMITS_TTL_MS + 15_000
    for (;;) {
      const counts = await app.counts()
      if (counts.every(({ freePermits }) => freePermits === PERMITS) || performance.now() > lapsedAt) return counts
      await sleep(50)
    }
  }

  async destroy(): Promise<void> {
    this.#isOver = true
    for (const app of this.#everyone) app.destroy()
    await this.#sampler
    await this.wire?.stop()
    await (this.cluster ?? this.sentinels ?? this.server).stop()
    rmSync(this.#dir, { recursive: true, force: true })
  }

  #way(n: number): Way {
    const { topology = 'single' } = this.#options
    // A client that `createClient` of `redis` makes does not support Sentinel.
    const kind = n % 2 === 0 || topology === 'sentinel' ? 'ioredis' : 'redis'
    if (this.sentinels) {
      return {
        kind,
        how: 'sentinel',
        name: this.sentinels.name,
        ports: this.sentinels.sentinels.map(({ port }) => port),
      }
    }
    if (this.cluster) return { kind, how: 'cluster', ports: this.cluster.masters.map(({ port }) => port) }
    return { kind, how: 'single', ports: [this.wire?.port ?? this.server.port] }
  }

  /** Samples the expiry of every key repeatedly. Servers that do not reply are sampled the next time. */
  async #sample(): Promise<void> {
    while (!this.#isOver) {
      await Promise.race([Promise.allSettled(this.servers.map((server) => this.#look(server))), sleep(500)])
      await sleep(100)
    }
  }

  async #look(server: RedisServer): Promise<void> {
    for (const [key, leftMs] of await server.lifetimes()) {
      this.#keysSeen++
      if (leftMs < 0) this.#keysForEver.add(key)
    }
  }
}

/** The offset of the common clock, in a file that all processes read. */
class SharedClock {
  readonly file: string
  readonly #aheadMs = new Float64Array(1)

  constructor(file: string) {
    this.file = file
    this.step(0)
  }

  step(ms: number): void {
    this.#aheadMs[0] = (this.#aheadMs[0] as number) + ms
    writeFileSync(this.file, this.#aheadMs)
  }
}

async function startServers({ topology = 'single', settings = [] }: WorldOptions) {
  if (topology === 'cluster') {
    const cluster = await startCluster()
    return { cluster, servers: cluster.masters }
  }
  if (topology === 'sentinel') {
    const sentinels = await startSentinels()
    return { sentinels, servers: sentinels.servers }
  }
  const server = await startRedis({ settings })
  return { servers: [server], wire: await startProxy(server.port) }
}
