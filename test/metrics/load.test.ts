// Release: runs Prometheus. Runs alone: it reads the figures of all stores of its process.
import { concurrency, createLimiter, fixedWindow, redisStore, type Verdict } from '@sluice/core'
import { sluiceMetrics } from '@sluice/prometheus'
import { Redis } from 'ioredis'
import { Registry } from 'prom-client'
import { afterAll, expect, test } from 'vitest'
import { promtool } from '../support/prometheus.js'
import { startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'
import { seriesOf, sumOf } from './exposition.js'

const register = new Registry()
const metrics = sluiceMetrics({ register })
const closing: (() => unknown)[] = [() => metrics.stop()]
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

/**
 * The verdicts that callers received, counted without the metrics: by policy and outcome, and those decided locally.
 */
class Verdicts {
  readonly byOutcome = new Map<string, number>()
  readonly alone = new Map<string, number>()

  add({ policy, reason, kind }: Verdict): void {
    const outcome = `${policy} ${reason ?? 'admitted'}`
    this.byOutcome.set(outcome, (this.byOutcome.get(outcome) ?? 0) + 1)
    if (kind === 'unavailable') this.alone.set(policy, (this.alone.get(policy) ?? 0) + 1)
  }
}

test('under load, with bans, leases, a queue, permits and an outage, metrics equal the verdicts of callers', async () => {
  const server = await startRedis()
  const client = new Redis(server.url)
  client.on('error', () => {})
  const store = redisStore(client, { timeout: 2000, warnings: { SLUICE_STORE_UNAVAILABLE: false } })
  closing.push(async () => {
    await store.close()
    client.disconnect()
    await server.stop()
  })
  await store.ready()

  const received = new Verdicts()
  const options = { store, onVerdict: (_: unknown, verdict: Verdict) => received.add(verdict) }
  const plain = createLimiter({ ...options, name: 'plain', limit: 20, window: '1h' })
  const leasing = createLimiter({
    ...options,
    name: 'leasing',
    limits: [fixedWindow({ limit: 1000, window: '1h', lease: { size: 50, ttl: '10s' } })],
  })
  const banning = createLimiter({
    ...options,
    name: 'banning',
    limit: 2,
    window: '1h',
    ban: { after: 3, within: '1h', for: ['1h'] },
  })
  const permits = createLimiter({ ...options, name: 'permits', limits: [concurrency({ limit: 5, ttl: '1h' })] })
  const closed = createLimiter({ ...options, name: 'closed', limit: 10, window: '1h', unavailable: { decide: 'deny' } })
  const all = [plain, leasing, banning, closed]

  const load = async (rounds: number) => {
    for (let round = 0; round < rounds; round++) {
      await Promise.all(all.flatMap((limiter) => ['ann', 'bob', 'cid', 'dan'].map((who) => limiter.consume(who))))
    }
  }
  await load(30)
  const taken = await Promise.all(Array.from({ length: 8 }, () => permits.consume('ann')))
  expect(taken.filter(({ allowed }) => allowed)).toHaveLength(5)
  for (const verdict of taken.slice(0, 2)) await permits.release(verdict)
  // Two calls that would wait too long, and one that gets its turn.
  const waits = await Promise.allSettled([
    plain.acquire('ann', { maxWait: 1 }),
    plain.acquire('bob', { maxWait: 1 }),
    permits.acquire('ann', { maxWait: '1m' }),
  ])
  expect(waits.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled'])

  const compare = async () => {
    const series = await seriesOf(register)
    for (const [which, count] of received.byOutcome) {
      const [policy = '', outcome = ''] = which.split(' ')
      expect([which, sumOf(series, 'sluice_requests_total', { policy, outcome })]).toEqual([which, count])
    }
    const sum = [...received.byOutcome.values()].reduce((total, count) => total + count, 0)
    expect(sumOf(series, 'sluice_requests_total')).toBe(sum)
    for (const policy of ['plain', 'leasing', 'banning', 'permits', 'closed']) {
      expect([policy, sumOf(series, 'sluice_requests_total', { policy, source: 'local' })]).toEqual([
        policy,
        received.alone.get(policy) ?? 0,
      ])
    }
    return series
  }

  const before = await compare()
  expect(sumOf(before, 'sluice_bans_total', { policy: 'banning' })).toBe(4)
  expect(sumOf(before, 'sluice_strikes_total', { policy: 'banning' })).toBe(12)
  expect(sumOf(before, 'sluice_requests_total', { policy: 'leasing', source: 'lease' })).toBeGreaterThan(50)
  expect(sumOf(before, 'sluice_requests_total', { policy: 'plain', source: 'deny-cache' })).toBeGreaterThan(0)
  expect(sumOf(before, 'sluice_active_permits', { policy: 'permits' })).toBe(4)
  expect(sumOf(before, 'sluice_permits_total', { policy: 'permits', outcome: 'taken' })).toBe(6)
  expect(sumOf(before, 'sluice_permits_total', { policy: 'permits', outcome: 'released' })).toBe(2)
  expect(sumOf(before, 'sluice_store_available', { store: 'redis' })).toBe(1)
  expect(sumOf(before, 'sluice_batch_size_sum', { store: 'redis' })).toBeGreaterThanOrEqual(
    sumOf(before, 'sluice_batch_size_count', { store: 'redis' }),
  )
  expect(sumOf(before, 'sluice_queued_requests')).toBe(0)

  server.kill('SIGKILL')
  await until('the store notices that Redis is away', async () => {
    await plain.consume('eve')
    return store.state === 'unavailable'
  })
  // The others may be refused by the deny cache for a second.
  expect(await closed.consume('eve')).toMatchObject({ allowed: false, reason: 'unavailable' })
  await load(10)
  const during = await compare()
  expect(sumOf(during, 'sluice_store_available', { store: 'redis' })).toBe(0)
  expect(received.byOutcome.get('closed unavailable')).toBeGreaterThan(0)

  await server.restart()
  await until('Redis decides again', () => store.state === 'available')
  await load(5)
  const after = await compare()
  expect(sumOf(after, 'sluice_store_available', { store: 'redis' })).toBe(1)
  expect(sumOf(after, 'sluice_store_pending')).toBe(0)
  // Counters never go down.
  for (const [id, value] of before) {
    if (/_(total|count|bucket)\{/.test(id)) expect(after.get(id), id).toBeGreaterThanOrEqual(value)
  }
  expect(await promtool(['check', 'metrics'], await register.metrics())).toBe('')
})
