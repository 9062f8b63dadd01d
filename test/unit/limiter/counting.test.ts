// Runs alone: it listens to the events of all limiters of its process.
import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setTimeout as sleep } from 'node:timers/promises'
import { concurrency, createLimiter, events, memoryStore, slidingLog } from '@sluice/core'
import { type Counting, startCounting } from '@sluice/core/metrics'
import { afterEach, expect, test } from 'vitest'
import { distantStore } from '../../support/outages.js'
import { warningsDuring } from '../../support/process-events.js'
import { until } from '../../support/until.js'

const stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
})

function counted(): Counting {
  const counting = startCounting()
  stops.push(counting.stop)
  return counting
}

let names = 0
const freshName = () => `counted-${names++}`
const total = (rows: readonly { readonly count: number }[]) => rows.reduce((sum, { count }) => sum + count, 0)

test('counting starts with the first startCounting, is shared by all of them, and continues after a restart', async () => {
  const name = freshName()
  const limiter = createLimiter({ name, limit: 100, window: '1h' })
  await limiter.consume('ann')
  const [one, other] = [startCounting(), startCounting()]
  const count = () => total(one.read().decisions.filter(({ policy }) => policy === name))
  expect(count()).toBe(0)
  await limiter.consume('ann')
  one.stop()
  one.stop()
  await limiter.consume('ann')
  expect(count()).toBe(2)
  other.stop()
  await limiter.consume('ann')
  expect(count()).toBe(2)
  counted()
  await limiter.consume('ann')
  expect(count()).toBe(3)
})

test('the distribution of usage bounds what a smaller limit would have refused', async () => {
  const name = freshName()
  const counting = counted()
  const limiter = createLimiter({ name, limits: [slidingLog({ limit: 10, window: '1h' })] })
  for (let n = 0; n < 12; n++) await limiter.consume('ann')
  await limiter.consume('bob', { cost: 3 })
  await limiter.peek('bob')
  const [used] = counting.read().used.filter(({ policy }) => policy === name)
  expect(used).toMatchObject({
    policy: name,
    limit: name,
    decisions: 13,
    beyond: 2,
    p50: 0.6,
    p90: Number.POSITIVE_INFINITY,
  })
  // Ann used a tenth each time, bob three tenths: half of the limit would have refused at most 7 of 13.
  expect(used?.counts.slice(0, 50).reduce((sum, count) => sum + count, 0)).toBe(6)
  expect(used?.counts).toHaveLength(101)
})

test('decisions of the local fallback are counted with source "local"', async () => {
  const name = freshName()
  const counting = counted()
  const store = distantStore(() => 1_800_000_000_000)
  const limiter = createLimiter({ name, store, limit: 2, window: '1h' })
  const open = createLimiter({ name, store, limit: 2, window: '1h', unavailable: { decide: 'allow' } })
  await limiter.consume('ann')
  store.isAway = true
  for (let n = 0; n < 3; n++) await limiter.consume('ann')
  for (let n = 0; n < 3; n++) await open.consume('ann')
  const rows = counting.read().decisions.filter(({ policy }) => policy === name)
  expect(rows.map(({ outcome, source, count }) => [outcome, source, count])).toEqual([
    ['admitted', 'store', 1],
    // An identity is known to have used no more than half, so this process begins from zero for it.
    ['admitted', 'local', 5],
    ['limited', 'local', 1],
  ])
})

test('permits count as active until they are released, refunded or lapse', async () => {
  const name = freshName()
  const counting = counted()
  const limiter = createLimiter({ name, limits: [concurrency({ limit: 9, ttl: '50ms' })] })
  const permits = () => counting.read().permits.find(({ policy }) => policy === name)
  const take = (permits: number) => limiter.consume('ann', { cost: { 'concurrent-requests': permits } })
  const [one, other] = [await take(2), await take(3)]
  await limiter.release(one)
  await limiter.refund('ann', other)
  expect(permits()).toEqual({ policy: name, active: 0, taken: 5, released: 5, lapsed: 0 })
  await limiter.consume('ann')
  await until('the permit lapses', () => permits()?.lapsed === 1)
  expect(permits()).toEqual({ policy: name, active: 0, taken: 6, released: 5, lapsed: 1 })
})

test('the number of rows is bounded for any number of policies, limits and identities', async () => {
  const counting = counted()
  const store = memoryStore()
  const before = counting.read()
  for (let n = 0; n < 300; n++) {
    const limiter = createLimiter({ name: freshName(), store, limit: 1, window: '1h' })
    for (const key of ['ann', 'ann', `key-${n}`]) await limiter.consume(key)
  }
  const name = freshName()
  for (let n = 0; n < 120; n++) {
    const limits = [slidingLog({ name: `limit-${n}`, limit: 1, window: '1h' })]
    const limiter = createLimiter({ name, store, limits })
    for (let times = 0; times < 2; times++) await limiter.consume('ann')
  }
  const after = counting.read()
  expect(new Set(after.decisions.map(({ policy }) => policy)).size).toBeLessThanOrEqual(101)
  expect(after.decisions.length).toBeLessThan(400)
  expect(after.used.length).toBeLessThan(400)
  expect(total(after.decisions) - total(before.decisions)).toBe(300 * 3 + 120 * 2)
  expect(after.decisions.filter(({ policy }) => policy === 'other').length).toBeGreaterThan(0)
})

test('a subscriber of a diagnostics channel receives the same events as listeners', async () => {
  const limiter = createLimiter({ name: freshName(), limit: 1, window: '1h' })
  const seen: [string, unknown][] = []
  const listener = (message: unknown, name: string | symbol) => void seen.push([String(name), message])
  for (const name of ['sluice:decision', 'sluice:refused']) {
    subscribe(name, listener)
    stops.push(() => void unsubscribe(name, listener))
  }
  const received: unknown[] = []
  stops.push(limiter.on('decision', (event) => received.push(event)))
  await limiter.consume('ann')
  await limiter.consume('ann')
  expect(seen.map(([name]) => name)).toEqual(['sluice:decision', 'sluice:decision', 'sluice:refused'])
  expect(seen.map(([, message]) => message)).toEqual([received[0], received[1], received[1]])
  expect(channel('sluice:ban').hasSubscribers).toBe(false)
})

test('a failing listener is warned of once a minute; a failing listener for warnings causes no loop', async () => {
  const limiter = createLimiter({ name: 'loud', limit: 100, window: '1h' })
  const silent = createLimiter({ name: 'silent', limit: 1, window: '1h', warnings: { SLUICE_LISTENER_FAILED: false } })
  const fail = async () => {
    throw new Error('mine')
  }
  stops.push(limiter.on('decision', fail), silent.on('decision', fail), events.on('warning', fail))
  const seen = await warningsDuring(async () => {
    for (let n = 0; n < 50; n++) await Promise.all([limiter.consume('ann'), silent.consume('ann')])
    await sleep(50)
  })
  expect(seen).toMatchObject([
    { code: 'SLUICE_LISTENER_FAILED', message: 'policy "loud": listener of "decision": mine' },
  ])
})

test('on() rejects unknown events and invalid fractions', () => {
  const limiter = createLimiter({ name: 'mail', limit: 1, window: '1h' })
  const listen = (name: string, listener: unknown, options?: object) => () =>
    limiter.on(name as 'decision', listener as () => void, options)
  expect(listen('decisions', () => {})).toThrow(/policy "mail": on: event: expected one of decision, /)
  expect(listen('decision', 'no')).toThrow(/policy "mail": on: decision: expected a function/)
  expect(listen('near-limit', () => {}, { at: 80 })).toThrow(/on: at: expected a number above 0, up to 1, got 80/)
  expect(listen('decision', () => {}, { at: 0.8 })).toThrow(/on: at: expected none but for near-limit/)
  expect(listen('near-limit', () => {}, { above: 1 })).toThrow(/above: unknown option/)
})
