import { events, type OutboundEvent, perSecond } from '@sluice/core'
import { METRICS, startCounting } from '@sluice/core/metrics'
import { limitedFetch } from '@sluice/fetch'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'

const counting = startCounting()
afterAll(() => counting.stop())
const open = closedAfterEach()

const url = 'http://service.test/path?token=secret'
const quota = (remaining: number) => ({
  RateLimit: `"day";r=${remaining};t=60`,
  'RateLimit-Policy': '"day";q=50;w=60',
})

/** The values of a metric of a policy, by its other labels. */
function valuesOf(name: string, policy: string): Record<string, number> {
  const metric = METRICS.find((each) => each.name === name)
  const points = metric?.read(counting.read()) ?? []
  return Object.fromEntries(
    points.flatMap(({ labels, ...point }) => {
      const { policy: of, ...others } = labels
      return of === policy ? [[Object.values(others).join(' '), 'value' in point ? point.value : point.count]] : []
    }),
  )
}

test('responses, holds and the limits that responses tell are counted, and each request once', async () => {
  const responses = [
    () => new Response(null, { headers: quota(40) }),
    () => Promise.reject(new TypeError('fetch failed')),
    () => Response.json({ error: 'insufficient_quota' }, { status: 429 }),
    () => new Response(null, { status: 429, headers: { 'Retry-After': '60' } }),
  ]
  const api = limitedFetch(async () => (await responses.shift()?.()) as Response, {
    name: 'counted',
    kindOf: ({ headers }) => (headers.has('content-type') ? 'final' : undefined),
  })
  const before = Date.now()
  for (let i = 0; i < 4; i++) await api(url).catch(() => {})
  expect(valuesOf('sluice.outbound.responses', 'counted')).toEqual({
    accepted: 1,
    refused: 1,
    final: 1,
    failed: 1,
    unsent: 0,
  })
  expect(valuesOf('sluice.outbound.quota.remaining', 'counted')).toEqual({ day: 40 })
  expect(valuesOf('sluice.outbound.quota.limit', 'counted')).toEqual({ day: 50 })
  const [heldUntil = 0] = Object.values(valuesOf('sluice.outbound.held_until', 'counted'))
  expect(heldUntil * 1000).toBeGreaterThanOrEqual(before + 60_000)
  expect(heldUntil * 1000).toBeLessThanOrEqual(Date.now() + 60_000)
  expect(valuesOf('sluice.blocks', 'counted')).toEqual({ '': 1 })
  const admitted = counting
    .read()
    .decisions.filter(({ policy, outcome }) => policy === 'counted' && outcome === 'admitted')
  // The slower rate after a refusal that tells no limits is a decision of its own.
  expect(admitted.map(({ count }) => count)).toEqual([4 + 1])
})

test('requests that wait are counted while they do, and then each with the whole of its wait', async () => {
  const waited: number[] = []
  const stop = events.on('waited', ({ policy, waitedMs }) => policy === 'waits' && waited.push(waitedMs))
  open.push(stop)
  const api = limitedFetch(async () => new Response(), { name: 'waits', limits: [perSecond(2)] })
  await Promise.all([api(url), api(url)])
  const abort = new AbortController()
  const rest = [api(url), api(url), api(url, { signal: abort.signal }).catch(() => {})]
  await expect.poll(() => valuesOf('sluice.queued_requests', 'waits')).toEqual({ '': 3 })
  abort.abort()
  await Promise.all(rest)
  expect(valuesOf('sluice.queued_requests', 'waits')).toEqual({ '': 0 })
  const turns = valuesOf('sluice.turns', 'waits')
  expect(turns).toMatchObject({ refused: 0, left: 1 })
  // The first of all tells the limits, so the second may have waited for it.
  expect(turns.admitted).toBe(waited.length - 1)
  expect(waited.filter((ms) => ms > 500).length).toBe(2)
})

test('an event tells the policy and what its service says, and nothing of the request', async () => {
  const seen: OutboundEvent[] = []
  open.push(events.on('outbound', (event) => event.policy === 'told' && seen.push(event)))
  const api = limitedFetch(async () => new Response(null, { headers: quota(0) }), { name: 'told' })
  await api(url)
  expect(seen).toEqual([
    { policy: 'told', outcome: 'accepted', holdMs: 60_000, limits: [expect.objectContaining({ name: 'day' })] },
  ])
  expect(JSON.stringify(seen)).not.toContain('secret')
})

test('a service that names its limits anew in each response makes few series', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.stringMatching(/^[a-z0-9-]{1,20}$/), { minLength: 30, maxLength: 60 }),
      async (names) => {
        const api = limitedFetch(
          async () =>
            new Response(null, {
              headers: {
                'x-ratelimit-limit': '5',
                'x-ratelimit-remaining': '4',
                'x-ratelimit-bucket': names.pop() ?? 'a',
              },
            }),
          { name: 'buckets', key: () => String(names.length) },
        )
        for (let i = 0; i < 30; i++) await api(url)
        expect(Object.keys(valuesOf('sluice.outbound.quota.limit', 'buckets')).length).toBeLessThanOrEqual(20)
      },
    ),
    { numRuns: 5 },
  )
})
