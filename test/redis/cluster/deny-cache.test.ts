// Release: runs clusters.
import { createLimiter, everyone, type Limiter, slidingLog } from '@sluice/core'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { clusterClients, oneOfEach } from '../../support/clients.js'
import { type RedisCluster, startCluster } from '../../support/redis-cluster.js'
import { slotOfIdentity } from '../../support/slots.js'
import { type OpenStore, openStore } from '../../support/stores.js'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
  return () => cluster.stop()
})

const now = 20_000 * 86_400_000
const user = slidingLog<string>({ limit: 2, window: '1h' })
const all = slidingLog<string>({ limit: 50, window: '1h', key: everyone() })

describe.each(oneOfEach(clusterClients))('refusals over several slots of a cluster, over %s', (kind) => {
  let open: OpenStore
  let limiter: Limiter
  let key: string
  beforeEach(async () => {
    await cluster.flush()
    open = await openStore(clusterClients[kind](cluster), { clock: () => now })
    limiter = createLimiter({ name: 'slots', store: open.store, limits: [user, all] })
    const shared = cluster.masters.indexOf(cluster.masterOf(slotOfIdentity('everyone', 'everyone')))
    key = cluster.identityOn((shared + 1) % cluster.masters.length)
    await limiter.consume(key, { cost: 2 })
    return () => open.close()
  })

  async function executions(): Promise<number> {
    const stats = await Promise.all(cluster.masters.map((master) => master.fields('INFO', 'commandstats')))
    const calls = (stat = '') => Number(/calls=(\d+)/.exec(stat)?.[1] ?? 0)
    return stats.reduce(
      (sum, { cmdstat_evalsha, cmdstat_eval }) => sum + calls(cmdstat_evalsha) + calls(cmdstat_eval),
      0,
    )
  }

  test('repeated refusals across slots cost nothing, even while others are admitted', async () => {
    const first = await limiter.consume(key)
    await limiter.consume('other')
    const before = await executions()
    for (let i = 0; i < 20; i++) expect(await limiter.consume(key)).toMatchObject({ ...first, reason: 'limited' })
    expect(await executions()).toBe(before)
    expect((await limiter.peek('fresh')).limits.map(({ remaining }) => remaining)).toEqual([2, 47])
  })

  test('a reset or a refund ends cached refusals across slots at once', async () => {
    expect((await limiter.consume(key)).allowed).toBe(false)
    await createLimiter({ name: 'slots', store: open.store, limits: [user] }).reset(key)
    const verdict = await limiter.consume(key, { cost: 2 })
    expect(verdict.allowed).toBe(true)
    expect((await limiter.consume(key)).allowed).toBe(false)
    await limiter.refund(key, verdict)
    expect((await limiter.consume(key)).allowed).toBe(true)
  })

  test('a refusal across slots is not cached when a reset came before the last slot replied', async () => {
    const slow = cluster.masterOf(slotOfIdentity('everyone', 'everyone'))
    slow.kill('SIGSTOP')
    const late = limiter.consume(key)
    await createLimiter({ name: 'slots', store: open.store, limits: [user] }).reset(key)
    slow.kill('SIGCONT')
    expect((await late).allowed).toBe(false)
    expect((await limiter.consume(key)).allowed).toBe(true)
  })
})
