import { inspect } from 'node:util'
import { createLimiter, fixedWindow, gcra, memoryStore, type Verdict } from '@sluice/core'
import { expect, test } from 'vitest'

const NOON = 20_000 * 86_400_000 + 43_200_000

const limits = [fixedWindow({ limit: 2, window: '1m' }), gcra({ limit: 10, window: '1s', name: 'burst' })]
const limiter = createLimiter({ name: 'api', store: memoryStore({ clock: () => NOON }), limits })

const REPORTS = [
  {
    name: 'api-1m',
    algorithm: 'fixedWindow',
    limit: 2,
    windowMs: 60_000,
    capacity: 2,
    unit: 'requests',
    allowed: true,
    remaining: 1,
    retryAfterMs: 0,
    resetAfterMs: 60_000,
  },
  {
    name: 'burst',
    algorithm: 'gcra',
    limit: 10,
    windowMs: 1000,
    capacity: 10,
    unit: 'requests',
    allowed: true,
    remaining: 9,
    retryAfterMs: 0,
    resetAfterMs: 100,
  },
]
const FIELDS = {
  allowed: true,
  policy: 'api',
  kind: 'decided',
  reason: undefined,
  remaining: 1,
  retryAfterMs: 0,
  resetAfterMs: 60_000,
  delayMs: 0,
  block: undefined,
  ban: undefined,
  list: undefined,
  cost: 1,
  tier: undefined,
  priority: 0,
  degraded: false,
  reported: false,
  limits: REPORTS,
  units: { requests: { cost: 1, remaining: 1 } },
}

test('a verdict as JSON has all fields except keys', async () => {
  const verdict = await limiter.consume('json')
  expect(JSON.parse(JSON.stringify({ verdict }))).toEqual({ verdict: JSON.parse(JSON.stringify(FIELDS)) })
  expect(verdict.toJSON()).toEqual(FIELDS)
})

test('console.log shows all fields of a verdict, and its class name at the depth limit', async () => {
  const verdict = await limiter.consume('log')
  class Verdict {}
  const limits = REPORTS.map((report) => ({ ...report, key: { kind: 'key', value: 'log' } }))
  const shown = Object.assign(new Verdict(), FIELDS, { limits })
  expect(inspect(verdict)).toBe(inspect(shown))
  expect(inspect({ verdict })).toBe(inspect({ verdict: shown }))
  expect(inspect({ a: { b: { verdict } } })).toContain('[Verdict]')
})

test('the limit reports of a verdict are made once, and keep the values of its decision', async () => {
  const first = await limiter.consume('later')
  const others: Verdict[] = []
  for (let i = 0; i < 5; i++) others.push(await limiter.consume('later'))
  await limiter.refund('later', first)
  await limiter.reset('later')
  expect(first.limits).toEqual(REPORTS)
  expect(first.limits).toBe(first.limits)
  expect(others.map(({ limits }) => limits[0]?.remaining)).toEqual([0, 0, 0, 0, 0])
  expect(others.map(({ limits }) => limits[0]?.allowed)).toEqual([true, false, false, false, false])
})
