// Release: runs clusters. Takes long: begins first.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  createLimiter,
  everyone,
  gcra,
  keyed,
  type Limiter,
  perHour,
  type RedisStore,
  redisStore,
  slidingLog,
} from '@sluice/core'
import { beforeAll, describe, expect, test } from 'vitest'
import { clusterClients, oneOfEach } from '../../support/clients.js'
import { closedAfterEach } from '../../support/closed-after-each.js'
import { decided } from '../../support/decided.js'
import { type RedisCluster, startCluster, startWiredMaster } from '../../support/redis-cluster.js'
import { slotOfIdentity } from '../../support/slots.js'
import { until } from '../../support/until.js'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
  return () => cluster.stop()
})

const open = closedAfterEach()

/** Long enough that a busy machine alone misses no deadline: three missed in a row would be an outage of their own. */
const TIMEOUT_MS = 500
/** Only a store that never recovers takes so long; `npm run chaos` measures the time to recover. */
const RECOVERY = { withinMs: 20_000 }

describe.each(oneOfEach(clusterClients))('a cluster, over %s', (kind) => {
  async function watched(
    reached: Parameters<(typeof clusterClients)[typeof kind]>[0] = cluster,
  ): Promise<{ store: RedisStore; limiter: Limiter; states: string[] }> {
    const { client, ready, close } = clusterClients[kind](reached)
    open.push(close)
    await ready
    const states: string[] = []
    const store = redisStore(client, {
      timeout: TIMEOUT_MS,
      onStateChange: (state, _cause, node) => void states.push(`${state} ${node}`),
    })
    open.push(() => store.close())
    return { store, states, limiter: createLimiter({ name: 'outage', store, limits: [perHour(1000)] }) }
  }
  const keys = () => cluster.masters.map((_, i) => cluster.identityOn(i))
  const untilAllDecide = (limiter: Limiter) =>
    until('every master decides', () => Promise.all(keys().map((key) => decided(limiter.consume(key)))), RECOVERY)

  test('a master that hangs does not affect the others, and decides again soon after it resumes', async () => {
    const { store, limiter, states } = await watched()
    await untilAllDecide(limiter)
    states.length = 0
    const [hung] = cluster.masters as [RedisCluster['masters'][number]]
    const [lost, ...others] = keys() as [string, string, string]
    hung.kill('SIGSTOP')
    try {
      // Beyond the time after which a silent connection is abandoned.
      for (let n = 0; n < 25; n++) {
        expect((await limiter.consume(lost)).kind).toBe('unavailable')
        if (n % 5 === 0) for (const key of others) await decided(limiter.consume(key))
        await sleep(100)
      }
      expect(store.state).toBe('unavailable')
      expect(states).toEqual([`unavailable 127.0.0.1:${hung.port}`])
      const before = performance.now()
      for (let n = 0; n < 100; n++) await limiter.consume(lost)
      // Half the time that they would take if each waited for its deadline.
      expect(performance.now() - before).toBeLessThan(50 * TIMEOUT_MS)
    } finally {
      hung.kill('SIGCONT')
    }
    await untilAllDecide(limiter)
    expect(store.state).toBe('available')
    // On a busy machine another master may have missed its deadlines too, and have recovered later.
    expect(states).toContain(`available 127.0.0.1:${hung.port}`)
  })

  test('a policy that needs an unreachable master charges the others nothing, and does not wait', async () => {
    const { store, limiter } = await watched()
    await untilAllDecide(limiter)
    const hung = cluster.masterOf(slotOfIdentity('everyone', 'everyone'))
    const user = cluster.identityOn((cluster.masters.indexOf(hung) + 1) % 3, `spread-${kind.replaceAll(' ', '-')}`)
    const limits = [gcra<string>({ limit: 50, window: '1d' })]
    const both = createLimiter({
      name: 'both',
      store,
      limits: [...limits, gcra({ limit: 50, window: '1d', key: everyone() })],
    })
    const alone = createLimiter({ name: 'both', store, limits })
    hung.kill('SIGSTOP')
    try {
      await until('the store knows of the outage', async () => {
        await both.consume(user)
        return store.state === 'unavailable'
      })
      await until('the charge is refunded', async () => (await decided(alone.peek(user))).remaining === 50)
      for (let n = 0; n < 20; n++) expect((await both.consume(user)).kind).toBe('unavailable')
      expect((await decided(alone.peek(user))).remaining).toBe(50)
    } finally {
      hung.kill('SIGCONT')
    }
    await until('both masters decide', () => decided(both.consume(user)), RECOVERY)
  })

  test('a refusal by one master holds although the refund on another is not acknowledged', async () => {
    const { client, ready, close } = clusterClients[kind](cluster)
    open.push(close)
    await ready
    // The store reads the clock just before it sends each script.
    let beforeExecution = () => {}
    const clock = () => {
      beforeExecution()
      return Date.now()
    }
    const store = redisStore(client, { timeout: 1500, denyCache: false, clock })
    open.push(() => store.close())
    const charged = cluster.masters[0] as RedisCluster['masters'][number]
    const names = kind.replaceAll(' ', '-')
    const user = cluster.identityOn(0, `charged-${names}`)
    const full = cluster.identityOn(1, `full-${names}`, 'full')
    const limits = [
      slidingLog<string>({ limit: 9, window: '1h' }),
      slidingLog<string>({ limit: 1, window: '1h', key: keyed('full', () => full) }),
    ]
    const limiter = createLimiter({ name: 'both', store, limits })
    await until('both masters decide', () => decided(limiter.peek(user)), RECOVERY)
    // A decision of Redis: one that missed its deadline would send refunds, which count as executions below.
    expect((await decided(limiter.consume(user))).allowed).toBe(true)
    let executions = 0
    beforeExecution = () => {
      if (++executions === 3) charged.kill('SIGSTOP')
    }
    try {
      expect(await limiter.consume(user)).toMatchObject({ kind: 'decided', allowed: false, reason: 'limited' })
      expect(executions).toBe(3)
    } finally {
      charged.kill('SIGCONT')
    }
  })

  test('a client reconnects to a master whose connections are silent, however much it knew of that master', async () => {
    const { wire, stop } = await startWiredMaster()
    open.push(stop)
    const known = await watched({ masters: [wire] })
    await until('the master decides', () => decided(known.limiter.consume('k')))
    const fresh = await watched({ masters: [wire] })
    // Time for the client to read the slots; it connects to their masters when it needs them.
    await sleep(200)
    const young = await watched({ masters: [wire] })
    wire.toServer.hold()
    // The store abandons the open connections, and then those that it opens during the silence.
    for (let n = 0; n < 25; n++) {
      for (const { limiter } of [known, fresh, young]) expect((await limiter.consume('k')).kind).toBe('unavailable')
      await sleep(100)
    }
    // All connections that are open by this point remain silent for good.
    wire.silence()
    wire.toServer.pass()
    for (const { limiter } of [known, fresh, young])
      await until('the master decides', () => decided(limiter.consume('k')), RECOVERY)
  })

  test('a new key whose slot is moving is decided on the new master, and charged once', async () => {
    const { limiter } = await watched()
    await untilAllDecide(limiter)
    const [from, to] = cluster.masters as [RedisCluster['masters'][number], RedisCluster['masters'][number]]
    const key = cluster.identityOn(0, `moving-${kind.replaceAll(' ', '-')}`)
    const slot = slotOfIdentity(key)
    await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(await from.call('CLUSTER', 'MYID')))
    await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(await to.call('CLUSTER', 'MYID')))
    try {
      expect(await limiter.consume(key)).toMatchObject({ kind: 'decided', remaining: 999 })
      expect(await limiter.consume(key)).toMatchObject({ kind: 'decided', remaining: 998 })
    } finally {
      for (const master of [to, from]) await master.call('CLUSTER', 'SETSLOT', slot, 'STABLE')
    }
    // Long enough to send it again. The other master has given up the slot and its keys.
    await sleep(300)
    expect((await decided(limiter.peek(key))).remaining).toBe(1000)
  })

  test('a cluster client that its user closes also ends the connections of the store', async () => {
    const { wire, stop } = await startWiredMaster()
    open.push(stop)
    const { client, ready, close } = clusterClients[kind]({ masters: [wire] })
    await ready
    const store = redisStore(client)
    const limiter = createLimiter({ name: 'closing', store, limits: [perHour(1000)] })
    await until('the master decides', () => decided(limiter.consume('k')))
    close()
    await until('no client is connected', () => wire.connections === 0)
    expect((await limiter.consume('k')).kind).toBe('unavailable')
    await store.close()
  })

  test('a store made while a master hangs decides locally for it, and by Redis everywhere once it resumes', async () => {
    const [hung] = cluster.masters as [RedisCluster['masters'][number]]
    const first = await watched()
    await untilAllDecide(first.limiter)
    hung.kill('SIGSTOP')
    try {
      const { client, close } = clusterClients[kind](cluster)
      open.push(close)
      const store = redisStore(client, { timeout: TIMEOUT_MS })
      open.push(() => store.close())
      const limiter = createLimiter({ name: 'late', store, limits: [perHour(1000)] })
      // A client of redis that reads the slots from the hanging master first knows no other until it resumes.
      for (const key of keys()) expect((await limiter.consume(key)).allowed).toBe(true)
      hung.kill('SIGCONT')
      await until('every master decides', () => Promise.all(keys().map((key) => decided(limiter.consume(key)))))
    } finally {
      hung.kill('SIGCONT')
    }
  })
})
