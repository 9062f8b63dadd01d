import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { HOST, type RedisServer } from '../../support/redis-server.js'
import { slotOfIdentity } from '../../support/slots.js'
import { until } from '../../support/until.js'

import type { Outcome, World, WorldOptions } from './world.js'

type Random = (below: number) => number

export interface Scenario {
  /** The fault, as the table names it. */
  readonly title: string
  readonly world?: Pick<WorldOptions, 'topology' | 'settings' | 'clock'>
  /** The fault, once in each round. Afterwards everything is as before. */
  readonly fault: (world: World, random: Random) => Promise<void>
  /** Expectations beside those of every scenario. */
  readonly expects?: (outcome: Outcome) => void
  /** Whether servers store their data in a separate directory. */
  readonly keepsData?: boolean
}

/** Long enough for processes to notice the outage, and to decide without waiting. */
const outage = (random: Random) => sleep(150 + random(500))

/** The ledger requests of a quarter of a second. */
const MAX_LOST_IN_LAG = 200
/** The largest share of local decisions without an outage. */
const MAX_LOCAL_SHARE = 0.5

/** The data survives: every admission is still counted. */
const losesNothing = ({ ledgerBeyond }: Outcome) => {
  for (const beyond of ledgerBeyond)
    expect(beyond, 'counted in the store, less reported to clients').toBeGreaterThanOrEqual(0)
}

const during = async (world: World, random: Random, begin: () => unknown, end: () => unknown) => {
  await begin()
  await outage(random)
  await end()
  await world.isBack()
}

const mostlyByStore = ({ locally, requests }: Outcome) => {
  expect(locally).toBeLessThan(MAX_LOCAL_SHARE * requests)
}

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  kill: {
    title: 'Redis is killed and starts again, empty',
    fault: async (world, random) => {
      await world.losing(async () => {
        world.server.kill('SIGKILL')
        await outage(random)
        await world.server.restart()
      })
      await world.isBack()
    },
  },
  'kill-durable': {
    title: 'Redis is killed and starts again with its data (`appendfsync always`)',
    keepsData: true,
    fault: async (world, random) => {
      world.server.kill('SIGKILL')
      await outage(random)
      await world.server.restart()
      await world.isBack()
    },
    expects: losesNothing,
  },
  pause: {
    title: 'Redis stands still (SIGSTOP)',
    fault: (world, random) =>
      during(
        world,
        random,
        () => world.server.kill('SIGSTOP'),
        () => world.server.kill('SIGCONT'),
      ),
    expects: losesNothing,
  },
  slow: {
    title: 'the network is slow: 20 ms a way, then 150 ms',
    fault: async (world, random) => {
      for (const delayMs of [20, 150]) {
        world.wire?.toServer.pass(delayMs)
        world.wire?.toClient.pass(delayMs)
        await outage(random)
      }
      world.wire?.toServer.pass()
      world.wire?.toClient.pass()
      await world.isBack()
    },
    expects: losesNothing,
  },
  cut: {
    title: 'connections break, are closed by half, and swallow one direction',
    fault: async (world, random) => {
      const { wire } = world
      if (!wire) return
      wire.cut()
      await world.isBack()
      wire.halfClose()
      await world.isBack()
      for (const way of [wire.toClient, wire.toServer]) {
        await during(
          world,
          random,
          () => way.hold(),
          () => way.pass(),
        )
      }
    },
    expects: losesNothing,
  },
  full: {
    title: 'Redis is full (`maxmemory`, `noeviction`)',
    fault: (world, random) =>
      during(
        world,
        random,
        () => world.server.call('CONFIG', 'SET', 'maxmemory', 1),
        () => world.server.call('CONFIG', 'SET', 'maxmemory', 0),
      ),
    expects: losesNothing,
  },
  'read-only': {
    title: 'Redis may not write: NOREPLICAS, then READONLY',
    fault: async (world, random) => {
      const { server } = world
      await during(
        world,
        random,
        () => server.call('CONFIG', 'SET', 'min-replicas-to-write', 1),
        () => server.call('CONFIG', 'SET', 'min-replicas-to-write', 0),
      )
      await during(
        world,
        random,
        () => server.call('REPLICAOF', '127.0.0.1', 1),
        () => server.call('REPLICAOF', 'NO', 'ONE'),
      )
    },
    expects: losesNothing,
  },
  scripts: {
    title: 'scripts are flushed, again and again',
    fault: async (world, random) => {
      for (let n = 0; n < 5; n++) {
        await world.server.call('SCRIPT', 'FLUSH')
        await sleep(random(100))
      }
      await world.isBack()
    },
    expects: (outcome) => {
      losesNothing(outcome)
      mostlyByStore(outcome)
    },
  },
  data: {
    title: 'all data is flushed',
    fault: async (world, random) => {
      await world.losing(() => world.server.flush())
      await sleep(300 + random(300))
      await world.isBack()
    },
    expects: mostlyByStore,
  },
  failover: {
    title: 'the master is killed, a replica is promoted (Sentinel)',
    world: { topology: 'sentinel' },
    fault: async (world) => {
      const { sentinels } = world
      if (!sentinels) return
      const master = await sentinels.master()
      for (const server of sentinels.servers) if (server !== master) await makeFollow(server, master)
      await world.losing(() => sentinels.failOver())
      await world.isBack()
    },
    // At most the charges of the replication lag are lost.
    expects: ({ ledgerBeyond, losses }) => {
      for (const beyond of ledgerBeyond) expect(-beyond).toBeLessThan(MAX_LOST_IN_LAG * losses)
    },
  },
  reshard: {
    title: 'slots move to another master, key by key (Cluster)',
    world: { topology: 'cluster' },
    fault: async (world, random) => {
      const { cluster } = world
      if (!cluster) return
      for (const identity of world.identities) await moveSlot(cluster.masters, slotOfIdentity(identity), random)
      await world.isBack()
    },
    expects: (outcome) => {
      losesNothing(outcome)
      // A moving slot decides nothing while a script would have keys on both masters.
      expect(outcome.locally).toBeLessThan(MAX_LOCAL_SHARE * outcome.requests)
    },
  },
  clock: {
    title: 'the clock of the store steps forward and back',
    world: { clock: true },
    fault: async (world, random) => {
      await world.stepClock(1000 + random(10_000))
      await sleep(300)
      await world.stepClock(-1000 - random(10_000))
      await sleep(300 + random(300))
      await world.isBack()
    },
    expects: losesNothing,
  },
  apps: {
    title: 'processes are killed that hold leases and permits',
    fault: async (world, random) => {
      const victim = world.apps[random(world.apps.length)]
      if (victim) await world.killApp(victim)
      await sleep(random(200))
      await world.startApp()
      await world.isBack()
    },
    expects: (outcome) => {
      losesNothing(outcome)
      mostlyByStore(outcome)
    },
  },
}

/** Restarts a server that was killed as a master, and waits until it is in sync with the new one. */
async function makeFollow(server: RedisServer, master: RedisServer): Promise<void> {
  const isDead = await server.call('PING').then(
    () => false,
    () => true,
  )
  if (isDead) {
    await server.restart()
    await server.call('REPLICAOF', HOST, master.port)
  }
  await until('the replica is in sync', async () => {
    const { role, master_link_status: link } = await server.fields('INFO', 'replication')
    return role === 'slave' && link === 'up'
  })
}

/** As `redis-cli --cluster reshard` does it, with time for requests between the steps. */
async function moveSlot(masters: readonly RedisServer[], slot: number, random: Random): Promise<void> {
  const ids = await Promise.all(masters.map((master) => master.call('CLUSTER', 'MYID').then(String)))
  const owners = (await masters[0]?.call('CLUSTER', 'SLOTS')) as [number, number, [string, number]][]
  const ownerPort = owners.find(([first, last]) => first <= slot && slot <= last)?.[2][1]
  const from = masters.findIndex(({ port }) => port === ownerPort)
  const to = (from + 1 + random(masters.length - 1)) % masters.length
  const [source, target] = [masters[from], masters[to]] as [RedisServer, RedisServer]
  await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', ids[from] as string)
  await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', ids[to] as string)
  await sleep(random(30))
  for (;;) {
    const keys = (await source.call('CLUSTER', 'GETKEYSINSLOT', slot, 1)) as string[]
    if (keys.length === 0) break
    await source.call('MIGRATE', HOST, target.port, keys[0] as string, 0, 5000)
    await sleep(random(15))
  }
  for (const node of [target, source, ...masters.filter((other) => other !== source && other !== target)]) {
    await node.call('CLUSTER', 'SETSLOT', slot, 'NODE', ids[to] as string)
  }
}

/** Settings for a server with a data directory, and its removal. */
export function dataDirectory(): { settings: readonly string[]; remove(): void } {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-data-'))
  return {
    settings: [`dir ${dir}`, 'appendonly yes', 'appendfsync always'],
    remove: () => rmSync(dir, { recursive: true, force: true }),
  }
}
