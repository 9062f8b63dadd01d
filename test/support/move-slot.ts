import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisCluster } from './redis-cluster.js'
import { HOST, type RedisServer } from './redis-server.js'

/** Moves a slot with its keys from one master to another, one key after the other, while both are in use. */
export async function moveSlot(cluster: RedisCluster, slot: number, from: RedisServer, to: RedisServer): Promise<void> {
  const [fromId, toId] = await Promise.all(
    [from, to].map(async (master) => String(await master.call('CLUSTER', 'MYID'))),
  )
  await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId as string)
  await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId as string)
  for (;;) {
    const keys = (await from.call('CLUSTER', 'GETKEYSINSLOT', slot, 1)) as string[]
    if (keys.length === 0) break
    for (const key of keys) await from.call('MIGRATE', HOST, to.port, key, 0, 5000)
    await sleep(2)
  }
  await sleep(10)
  // New keys are on the other master from here on, so the first has none left to lose.
  for (const master of new Set([to, from, ...cluster.masters])) {
    await master.call('CLUSTER', 'SETSLOT', slot, 'NODE', toId as string)
  }
}
