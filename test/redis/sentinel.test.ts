// Release: runs sentinels. Takes long: begins first.
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, type Limiter, redisStore, type Verdict } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { listeningClients, namesOf, oneOfEach, sentinelClients } from '../support/clients.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { decided } from '../support/decided.js'
import { warningsDuring } from '../support/process-events.js'
import { type RedisSentinels, startSentinels } from '../support/redis-sentinel.js'
import { until } from '../support/until.js'

const TIMEOUT_MS = 100
/** A decision without a deadline takes as long as there is no master; on a busy machine, one with a deadline may take this. */
const HANGS_MS = 5000
/** Only a store that never recovers takes so long; `npm run chaos` measures the time to recover. */
const RECOVERY_MS = 20_000

const open = closedAfterEach()

let rounds = 0

interface Attempt {
  readonly tookMs: number
  readonly kind: string
}

/** Sends a request every 20 ms, each with another key, until it is stopped. */
function keepRequesting(limiter: Limiter): { stop(): Promise<Attempt[]> } {
  const attempts: Promise<Attempt>[] = []
  let isStopped = false
  const requests = (async () => {
    for (let n = 0; !isStopped; n++) {
      const before = performance.now()
      const tookMs = () => performance.now() - before
      attempts.push(limiter.consume(`key-${n}`).then(({ kind }) => ({ tookMs: tookMs(), kind })))
      await sleep(20)
    }
  })()
  return {
    async stop() {
      isStopped = true
      await requests
      return Promise.all(attempts)
    },
  }
}

describe.each(namesOf(sentinelClients))('%s', (kind) => {
  async function start(): Promise<{ all: RedisSentinels; limiter: Limiter }> {
    const all = await startSentinels()
    open.push(() => all.stop())
    const { client, ready, close } = sentinelClients[kind](all)
    open.push(close)
    await ready
    const store = redisStore(client, { timeout: TIMEOUT_MS })
    open.push(() => store.close())
    const limiter = createLimiter({ name: 'failover', store, limit: 5, window: '1h' })
    await until('the store is connected', () => decided(limiter.consume('first')))
    return { all, limiter }
  }

  async function expectRecovery(limiter: Limiter, requests: { stop(): Promise<Attempt[]> }): Promise<void> {
    await until('the new master decides', () => decided(limiter.consume('again')), { withinMs: RECOVERY_MS })
    const attempts = await requests.stop()
    expect(Math.max(...attempts.map(({ tookMs }) => tookMs))).toBeLessThan(HANGS_MS)
    // Limits are exact again.
    let after: Verdict[] = []
    await until(
      'Redis makes all of many decisions',
      async () => {
        const key = `after-${rounds++}`
        after = await Promise.all(Array.from({ length: 20 }, () => limiter.consume(key)))
        return after.every(({ kind }) => kind === 'decided')
      },
      { withinMs: RECOVERY_MS },
    )
    expect(after.filter(({ allowed }) => allowed)).toHaveLength(5)
  }

  test('a store decides again soon after its master is killed and a replica is promoted', async () => {
    const { all, limiter } = await start()
    const requests = keepRequesting(limiter)
    const promoted = await all.failOver()
    await expectRecovery(limiter, requests)
    expect((await promoted.lifetimes()).size).toBeGreaterThan(1)
    for (const leftMs of (await promoted.lifetimes()).values()) expect(leftMs).toBeGreaterThan(0)
  })

  test('a store follows the promoted replica after its master hangs, and stays there when the old master resumes', async () => {
    const { all, limiter } = await start()
    const requests = keepRequesting(limiter)
    const old = await all.master()
    const promoted = await all.failOver('SIGSTOP')
    await until('the new master decides', () => decided(limiter.consume('again')), { withinMs: RECOVERY_MS })
    old.kill('SIGCONT')
    // It may still execute commands from before it hung, but no new ones.
    await until('the old master replies', () => old.call('PING'))
    const before = Number(await old.call('DBSIZE'))
    await sleep(500)
    expect(Number(await old.call('DBSIZE'))).toBeLessThanOrEqual(before)
    await expectRecovery(limiter, requests)
    expect(await all.master()).toBe(promoted)
  })

  test('a store decides again soon after a planned failover, with the old master alive as a replica', async () => {
    const { all, limiter } = await start()
    const requests = keepRequesting(limiter)
    const old = await all.master()
    await all.sentinels[0]?.call('SENTINEL', 'FAILOVER', all.name)
    await until('a replica is promoted', async () => (await all.master()) !== old, { withinMs: 30_000 })
    await expectRecovery(limiter, requests)
  })
})

describe.each(namesOf(listeningClients))('%s', (kind) => {
  test('a store follows a planned failover before the old master is demoted', async () => {
    const all = await startSentinels()
    open.push(() => all.stop())
    const { client, ready, close } = listeningClients[kind](all)
    open.push(close)
    await ready
    const store = redisStore(client, { timeout: TIMEOUT_MS })
    open.push(() => store.close())
    const limiter = createLimiter({ name: 'followed', store, limit: 5, window: '1h' })
    await until('the store is connected', () => decided(limiter.consume('first')))
    const old = await all.master()
    // Until its Sentinels demote it, it replies as a master.
    const roleOfOld = async () => (await old.fields('INFO', 'replication')).role
    await all.sentinels[0]?.call('SENTINEL', 'FAILOVER', all.name)
    const promoted = await until('a replica is promoted', async () => {
      const master = await all.master()
      return master !== old && master
    })
    const isThere = async () =>
      (await decided(limiter.consume(`key-${rounds++}`))) && Number(await promoted.call('DBSIZE'))
    const before = Number(await promoted.call('DBSIZE'))
    await until('the promoted replica counts', async () => Number(await isThere()) > before)
    expect(await roleOfOld()).toBe('master')
  })
})

describe('warnings of a Sentinel client', () => {
  const ofDetector = (warnings: readonly Error[]) =>
    warnings.filter((warning) => 'code' in warning && warning.code === 'SLUICE_NO_FAILOVER_DETECTOR')

  test('a client without a failover detector causes one warning, however many stores it has', async () => {
    const all = await startSentinels()
    open.push(() => all.stop())
    const clients = { ...sentinelClients, ...listeningClients }
    for (const kind of oneOfEach(clients)) {
      const { client, close } = clients[kind](all)
      open.push(close)
      const warnings = await warningsDuring(async () => {
        for (const name of ['one', 'two']) {
          const store = redisStore(client, { timeout: 5000 })
          open.push(() => store.close())
          const limiter = createLimiter({ name, store, limit: 5, window: '1h' })
          for (let n = 0; n < 2; n++) await decided(limiter.consume('k'))
        }
      })
      expect([kind, ofDetector(warnings).length]).toEqual([kind, kind in sentinelClients ? 1 : 0])
    }
  })
})
