// Release: runs Prometheus. Runs alone: it reads the figures of all stores of its process.
import { calendarMonth, createLimiter, fixedWindow, memoryStore } from '@sluice/core'
import { sluiceMetrics } from '@sluice/prometheus'
import { Registry } from 'prom-client'
import { afterAll, expect, test } from 'vitest'
import { promtool } from '../support/prometheus.js'
import { seriesOf, sumOf } from './exposition.js'

const register = new Registry()
const metrics = sluiceMetrics({ register })
afterAll(() => metrics.stop())

test('a hundred thousand identities add no series, and none of them appears', async () => {
  const store = memoryStore({ maxKeys: 10_000 })
  const limiter = createLimiter({ name: 'many', store, limit: 1, window: '1h' })
  const each = async (from: number, to: number) => {
    for (let n = from; n < to; n++) {
      await limiter.consume(`client-${n}`)
      // Every outcome of the policy exists from the start.
      if (n % 10 === 0) await limiter.consume(`client-${n}`)
    }
  }
  await each(0, 100)
  const before = await seriesOf(register)
  await each(100, 100_000)
  const after = await seriesOf(register)
  expect([...after.keys()]).toEqual([...before.keys()])
  expect(sumOf(after, 'sluice_requests_total', { policy: 'many' })).toBe(110_000)
  expect(await register.metrics()).not.toContain('client-')
  await store.close?.()
})

test('a window of the calendar is one limit over all of its periods', async () => {
  let now = Date.parse('2026-01-01T00:00:00Z')
  const limits = [calendarMonth(2), fixedWindow({ limit: 1, window: 'day', timeZone: 'Europe/Berlin' })]
  const limiter = createLimiter({ name: 'quota', store: memoryStore({ clock: () => now }), limits })
  for (let hour = 0; hour < 24 * 90; hour += 12, now += 12 * 3_600_000) await limiter.consume('ann')
  const series = await seriesOf(register)
  const ofQuota = [...series.keys()].filter((id) => /^sluice_requests_total.*policy="quota"/.test(id))
  const limitsNamed = new Set(ofQuota.map((id) => /limit="([^"]*)"/.exec(id)?.[1]))
  expect(limitsNamed).toEqual(new Set(['', 'quota-month', 'quota-day']))
  expect(sumOf(series, 'sluice_requests_total', { policy: 'quota', outcome: 'admitted' })).toBe(3 * 2)
})

test('limits of one name are a series for each tier, and tiers beyond the first twenty share one name', async () => {
  const tiers = Object.fromEntries(
    Array.from({ length: 40 }, (_, n) => [`plan-${n}`, [fixedWindow({ limit: 1, window: '1h' })]]),
  )
  const limiter = createLimiter({ name: 'plans', tiers, tier: (key: string) => key })
  for (const tier of ['plan-0', ...Object.keys(tiers)]) await limiter.consume(tier)
  const series = await seriesOf(register)
  const ofPlan = (tier: string) => ({ policy: 'plans', tier })
  expect(sumOf(series, 'sluice_requests_total', { ...ofPlan('plan-0'), outcome: 'limited', limit: 'plans' })).toBe(1)
  expect(sumOf(series, 'sluice_requests_total', { ...ofPlan('plan-1'), outcome: 'admitted' })).toBe(1)
  expect(sumOf(series, 'sluice_limit_needed_ratio_count', { ...ofPlan('plan-1'), limit: 'plans' })).toBe(1)
  expect(sumOf(series, 'sluice_requests_total', ofPlan('other'))).toBe(20)
})

test('policies beyond the first hundred share one name', async () => {
  const store = memoryStore()
  for (let n = 0; n < 500; n++) {
    await createLimiter({ name: `of-tenant-${n}`, store, limit: 1, window: '1h' }).consume('ann')
  }
  const series = await seriesOf(register)
  const names = new Set([...series.keys()].flatMap((id) => /policy="([^"]*)"/.exec(id)?.[1] ?? []))
  expect(names.size).toBeLessThanOrEqual(102)
  const other = sumOf(series, 'sluice_requests_total', { policy: 'other' })
  expect(other).toBeGreaterThanOrEqual(400)
  const named = [...names].filter((name) => name.startsWith('of-tenant-'))
  expect(other + named.length).toBe(500)
  expect(await promtool(['check', 'metrics'], await register.metrics())).toBe('')
  await store.close?.()
})

test('a policy named other, constructor or __proto__ counts like any other', async () => {
  for (const name of ['constructor', '__proto__', 'toString']) {
    await createLimiter({ name, limit: 5, window: '1h' }).consume('ann')
  }
  expect(await promtool(['check', 'metrics'], await register.metrics())).toBe('')
})
