import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, type Limiter, redisStore, type Verdict } from '@sluice/core'
import { afterEach, describe, expect, test } from 'vitest'
import { namesOf, sentinelClients } from '../support/clients.js'
import { decided } from '../support/decided.js'
import { type RedisSentinels, startSentinels } from '../support/redis-sentinel.js'
import { until } from '../support/until.js'

const TIMEOUT_MS = 100
/** A decision that waits for a master waits for as long as there is none; on a busy machine one with a deadline may take this. */
const HANGS_MS = 5000
/** Only a store that does not come back takes so long. How soon it is back, `npm run chaos` measures. */
const RECOVERY_MS = 20_000

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

let rounds = 0

interface Attempt {
  readonly tookMs: number
  readonly kind: string
}

/** Asks every 20 ms, each time for another key, until told to stop. */
function keepAsking(limiter: Limiter): { stop(): Promise<Attempt[]> } {
  const attempts: Promise<Attempt>[] = []
  let isStopped = false
  const asking = (async () => {
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
      await asking
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

  async function expectRecovery(limiter: Limiter, asking: { stop(): Promise<Attempt[]> }): Promise<void> {
    await until('decisions go on', () => decided(limiter.consume('again')), { withinMs: RECOVERY_MS })
    const attempts = await asking.stop()
    expect(Math.max(...attempts.map(({ tookMs }) => tookMs))).toBeLessThan(HANGS_MS)
    // Whole: what it counts now, it counts exactly.
    let after: Verdict[] = []
    await until(
      'all of many decisions are made by Redis',
      async () => {
        const key = `after-${rounds++}`
        after = await Promise.all(Array.from({ length: 20 }, () => limiter.consume(key)))
        return after.every(({ kind }) => kind === 'decided')
      },
      { withinMs: RECOVERY_MS },
    )
    expect(after.filter(({ allowed }) => allowed)).toHaveLength(5)
  }

  test('decides again soon after the master was killed and a replica was promoted', async () => {
    const { all, limiter } = await start()
    const asking = keepAsking(limiter)
    const promoted = await all.failOver()
    await expectRecovery(limiter, asking)
    expect((await promoted.lifetimes()).size).toBeGreaterThan(1)
    for (const leftMs of (await promoted.lifetimes()).values()) expect(leftMs).toBeGreaterThan(0)
  })

  test('decides again soon after the master hung and a replica was promoted, and stays there when the old one wakes up', async () => {
    const { all, limiter } = await start()
    const asking = keepAsking(limiter)
    const old = await all.master()
    const promoted = await all.failOver('SIGSTOP')
    await until('decisions go on', () => decided(limiter.consume('again')), { withinMs: RECOVERY_MS })
    old.kill('SIGCONT')
    // What it was sent before it hung, it may run now; but nothing new.
    await until('the old master answers', () => old.call('PING'))
    const before = Number(await old.call('DBSIZE'))
    await sleep(500)
    expect(Number(await old.call('DBSIZE'))).toBeLessThanOrEqual(before)
    await expectRecovery(limiter, asking)
    expect(await all.master()).toBe(promoted)
  })

  test('decides again soon after a planned failover, with the old master alive and refusing to write', async () => {
    const { all, limiter } = await start()
    const asking = keepAsking(limiter)
    const old = await all.master()
    await all.sentinels[0]?.call('SENTINEL', 'FAILOVER', all.name)
    await until('a replica is promoted', async () => (await all.master()) !== old, { withinMs: 30_000 })
    await expectRecovery(limiter, asking)
  })
})
