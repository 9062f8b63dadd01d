import { setTimeout } from 'node:timers/promises'
import {
  byHeader,
  byIp,
  concurrency,
  type DecisionEvent,
  degrade,
  delay,
  events,
  gcra,
  leakyBucket,
  memoryStore,
  queue,
  slidingLog,
  throttle,
  type Verdict,
  type WaitedEvent,
} from '@sluice/core'
import { type Snapshot, startCounting } from '@sluice/core/metrics'
import request from 'supertest'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../support/until.js'
import type { AnyOptions, AppFactory, RunningApp } from './support/app.js'
import { run } from './support/app.js'

let policies = 0

/** The events of requests, in every framework. */
export function eventsContract(name: string, factory: AppFactory): void {
  describe(name, () => {
    const running: RunningApp[] = []
    const stops: (() => void)[] = []
    afterEach(async () => {
      for (const stop of stops.splice(0)) stop()
      for (const app of running.splice(0)) await app.close()
    })

    async function get(options: AnyOptions, from: readonly string[]): Promise<number[]> {
      const app = await run(factory, { trustProxy: true, routes: { '/': { limiters: [options] } } })
      running.push(app)
      const statuses: number[] = []
      for (const ip of from) statuses.push((await request(app.server).get('/').set('x-forwarded-for', ip)).status)
      return statuses
    }

    function decisionsOf(policy: string): { decisions: DecisionEvent[]; refused: DecisionEvent[] } {
      const seen = { decisions: [] as DecisionEvent[], refused: [] as DecisionEvent[] }
      const collect = (into: DecisionEvent[]) => (event: DecisionEvent) => {
        if (event.policy === policy) into.push(event)
      }
      stops.push(events.on('decision', collect(seen.decisions)), events.on('refused', collect(seen.refused)))
      return seen
    }

    const freshPolicy = () => `seen-${policies++}`
    const ip = '192.0.2.7'
    const limits = [slidingLog({ limit: 1, window: '1h' })]

    test('each request causes one decision event; one that is admitted over the limit causes no refused event', async () => {
      const policy = freshPolicy()
      const { decisions, refused } = decisionsOf(policy)
      expect(await get({ name: policy, limits, key: byIp() }, [ip, ip])).toEqual([200, 429])
      expect(await get({ name: policy, limits, enforce: { mode: 'report' } }, [ip, ip])).toEqual([200, 200])
      expect(await get({ name: policy, limits, respond: degrade() }, [ip, ip])).toEqual([200, 200])
      expect(await get({ name: policy, limits, deny: (req: unknown) => req !== undefined }, [ip])).toEqual([403])
      expect(decisions.map(({ outcome, source, limit, reported }) => [outcome, source, limit, reported])).toEqual([
        ['admitted', 'store', undefined, false],
        ['limited', 'store', policy, false],
        ['admitted', 'store', undefined, true],
        ['limited', 'store', policy, true],
        ['admitted', 'store', undefined, false],
        ['limited', 'store', policy, false],
        ['denied', 'list', undefined, false],
      ])
      expect(refused.map(({ outcome }) => outcome)).toEqual(['limited', 'denied'])
      expect(refused[0]?.verdict.keys).toEqual([{ kind: 'ip', value: ip }])
    })

    test('a listener that throws or rejects does not affect the request', async () => {
      const policy = freshPolicy()
      stops.push(
        events.on('decision', () => {
          throw new Error('mine')
        }),
        events.on('decision', () => Promise.reject(new Error('mine, later'))),
      )
      const { decisions } = decisionsOf(policy)
      expect(await get({ name: policy, limits }, [ip, ip])).toEqual([200, 429])
      expect(decisions).toHaveLength(2)
    })

    test('a waiting request is counted while it waits, and causes an event afterwards', async () => {
      const policy = freshPolicy()
      const waits: WaitedEvent[] = []
      stops.push(events.on('waited', (event) => void (event.policy === policy && waits.push(event))))
      const counting = startCounting()
      stops.push(counting.stop)
      const queued = () => counting.read().queues.find((row) => row.policy === policy)
      const clock = { now: 1_000_000 }
      const store = memoryStore({ clock: () => clock.now })
      const second = gcra({ limit: 1, window: '1s' })
      const served = get({ name: policy, limits: [second], store, respond: queue({ maxWait: '30s' }) }, [ip, ip])
      await until('one waits', () => queued()?.waiting === 1)
      expect(waits).toEqual([])
      clock.now += 1000
      expect(await served).toEqual([200, 200])
      expect(waits).toMatchObject([{ policy, outcome: 'admitted' }])
      expect(queued()).toMatchObject({ waiting: 0, admitted: 1, refused: 0, left: 0, histogram: { count: 1 } })
      expect(queued()?.histogram.sum).toBeCloseTo(waits[0]?.waitedMs as number, 5)
    })

    const everySecond = gcra<unknown>({ limit: 1, window: '1s' })
    const inTurn = leakyBucket<unknown>({ leak: 1, every: '1s', capacity: 9, queue: true })
    test.each([
      ['a queue', { limits: [everySecond], respond: queue({ maxWait: '30s' }) }],
      ['a delay', { limits: [everySecond], respond: delay({ max: '30s' }) }],
      ['a wait for its turn', { limits: [inTurn] }],
      [
        'a delay of admitted requests',
        { limits: [gcra({ limit: 9, window: '1h' })], respond: delay({ from: 1, by: '9s' }) },
      ],
    ])('a client that leaves %s has the outcome left, and is charged nothing', async (_, options) => {
      const policy = freshPolicy()
      const { decisions, refused } = decisionsOf(policy)
      const counting = startCounting()
      stops.push(counting.stop)
      const clock = { now: 1_000_000 }
      const store = memoryStore({ clock: () => clock.now, offenders: true })
      const verdicts: Verdict[] = []
      const onVerdict = (_: unknown, verdict: Verdict) => void verdicts.push(verdict)
      let arrived = 0
      const cost = () => {
        arrived++
        return 1
      }
      const limited = { name: policy, store, onVerdict, cost, ...options } as AnyOptions
      const app = await run(factory, { routes: { '/': { limiters: [limited] } } })
      running.push(app)
      const leaving = new AbortController()
      const first = await fetch(app.url)
      expect(first.status).toBe(200)
      const second = fetch(app.url, { signal: leaving.signal }).catch(() => 'left')
      await until('the request waits', () => arrived === 2)
      await setTimeout(20)
      leaving.abort()
      expect(await second).toBe('left')
      await until('the client has left', () => verdicts.length === 2)
      const left = { allowed: false, reason: 'left', cost: 0 }
      expect(verdicts).toMatchObject([{ allowed: true, reason: undefined }, left])
      expect(decisions).toMatchObject([
        { allowed: true, outcome: 'admitted' },
        { allowed: false, outcome: 'left', limit: undefined },
      ])
      expect(refused).toEqual([])
      const counted = counting.read().decisions.filter((row) => row.policy === policy)
      expect(counted.map(({ outcome, limit, count }) => [outcome, limit, count])).toEqual([
        ['admitted', '', 1],
        ['left', '', 1],
      ])
      expect((await store.offenders({ policy })).offenders).toEqual([])
    })

    test.each([
      ['throttled', throttle({ bytesPerSecond: 1_000_000 })],
      ['degraded', degrade()],
    ])('an impossible cost that is %s counts as limited, not as impossible or refused', async (_, respond) => {
      const policy = freshPolicy()
      const counting = startCounting()
      stops.push(counting.stop)
      const reasons: unknown[] = []
      const { refused } = decisionsOf(policy)
      const common = {
        name: policy,
        limits,
        cost: 100,
        onVerdict: (_request: unknown, verdict: Verdict) => void reasons.push(verdict.reason),
      }
      expect(await get({ ...common, respond } as AnyOptions, [ip])).toEqual([200])
      expect(await get(common as AnyOptions, [ip])).toEqual([429])
      expect(reasons).toEqual(['limited', 'impossible'])
      expect(refused).toHaveLength(1)
      const counted = counting.read().decisions.filter((row) => row.policy === policy)
      expect(counted.map(({ outcome, count }) => [outcome, count])).toEqual([
        ['limited', 1],
        ['impossible', 1],
      ])
    })

    test('counts of requests have policy, limit, outcome and source', async () => {
      const policy = freshPolicy()
      const counting = startCounting()
      stops.push(counting.stop)
      const key = byHeader('x-forwarded-for')
      const ban = { by: 'header:x-forwarded-for', after: 3, within: '1h', for: ['1h'] } as const
      const from = ['8.8.8.8', '8.8.8.8', '1.1.1.1', '8.8.8.8', '8.8.8.8', '8.8.8.8', '9.9.9.9']
      const options = { name: policy, limits, key, ban, store: memoryStore() } as AnyOptions
      expect(await get(options, from)).toEqual([200, 429, 200, 429, 429, 429, 200])
      const own = <Row extends { policy: string }>(rows: readonly Row[]) => rows.filter((row) => row.policy === policy)
      const snapshot: Snapshot = counting.read()
      const common = { policy, tier: '', source: 'store', reported: false }
      expect(own(snapshot.decisions)).toEqual([
        { ...common, limit: '', outcome: 'admitted', count: 3 },
        { ...common, limit: '', outcome: 'banned', count: 2 },
        { ...common, limit: policy, outcome: 'limited', count: 2 },
      ])
      expect(own(snapshot.abuse)).toEqual([{ policy, strikes: 3, bans: 1, blocks: 0, unblocks: 0 }])
      expect(own(snapshot.used)).toMatchObject([
        { limit: policy, decisions: 5, beyond: 2, p50: 1, p90: Number.POSITIVE_INFINITY },
      ])
      expect(own(snapshot.reported)).toEqual([])
      expect(
        snapshot.stores.some(({ kind, blocked, keys = 0 }) => kind === 'memory' && blocked === 1 && keys > 0),
      ).toBe(true)
      // No client's identity is in it.
      expect(JSON.stringify(snapshot)).not.toContain('8.8.8')
    })

    test('in report mode the share of requests that would be refused is counted', async () => {
      const policy = freshPolicy()
      const counting = startCounting()
      stops.push(counting.stop)
      expect(await get({ name: policy, limits, enforce: { mode: 'report' } }, [ip, ip, ip])).toEqual([200, 200, 200])
      const rows = counting.read().reported.filter((row) => row.policy === policy)
      expect(rows).toEqual([{ policy, decisions: 3, refused: 2 }])
    })

    test('permits are active while handlers run', async () => {
      const policy = freshPolicy()
      const counting = startCounting()
      stops.push(counting.stop)
      const limit = concurrency({ limit: 5, ttl: '1m' })
      await get({ name: policy, limits: [limit], key: byIp() }, [ip, ip])
      const permits = () => counting.read().permits.find((row) => row.policy === policy)
      await until('the permits are released', () => permits()?.active === 0)
      expect(permits()).toEqual({ policy, active: 0, taken: 2, released: 2, lapsed: 0 })
    })
  })
}
