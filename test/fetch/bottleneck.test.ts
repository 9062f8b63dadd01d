// Release: many waits in real time.
import { concurrency, events, fixedWindow, gcra, type Limit, memoryStore, redisStore, tokenBucket } from '@sluice/core'
import { startCounting } from '@sluice/core/metrics'
import { type LimitedFetchOptions, limitedFetch } from '@sluice/fetch'
import { expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { redisForTests } from '../support/redis-for-tests.js'

// The cases of bottleneck 2.19's own tests, by file and place: see docs/migrating-from-others.md.

const open = closedAfterEach()
const { server, client: redis } = await redisForTests()

let made = 0
const newName = () => `case-${made++}`

interface Job {
  readonly weight?: number
  readonly priority?: number
  readonly signal?: AbortSignal
}

/** A client whose service takes `tookMs` for each request, which has a name, a weight and a priority. */
function serviceOf(options: LimitedFetchOptions, tookMs = 0) {
  const sent: string[] = []
  const sentAt: number[] = []
  const state = { open: 0, most: 0 }
  const startedAt = performance.now()
  /** When a request was sent, in ms since the first one could be. */
  const msUntil = (place: number) => (sentAt[place] as number) - startedAt
  const called: typeof fetch = async (input, init) => {
    sent.push(new URL(String(input)).pathname.slice(1))
    sentAt.push(performance.now())
    state.most = Math.max(state.most, ++state.open)
    try {
      await new Promise((resolve, reject) => {
        setTimeout(resolve, tookMs)
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason))
      })
      return new Response()
    } finally {
      state.open--
    }
  }
  const api = limitedFetch(called, {
    name: newName(),
    key: 'all',
    maxWait: Number.POSITIVE_INFINITY,
    priority: ({ headers }) => Number(headers.get('priority') ?? 0),
    ...options,
  })
  const call = async (name: string, { weight = 1, priority = 0, signal }: Job = {}) => {
    const headers = { weight: String(weight), priority: String(priority) }
    return (await api(`http://service.test/${name}`, signal ? { headers, signal } : { headers })).status
  }
  return { call, api, sent, sentAt, msUntil, state }
}

const byWeight: LimitedFetchOptions['cost'] = ({ headers }) => Number(headers.get('weight'))
const reservoir = (limit: number, windowMs: number) => [
  fixedWindow({ limit, window: windowMs, anchor: 'first-request' }),
]
const increasing = (capacity: number, refill: number, everyMs: number) => [
  tokenBucket({ capacity, refill, every: everyMs, style: 'interval' }),
]
const oneAtATime = () => [concurrency({ limit: 1, ttl: '1m' })]

/** Two clients as of two processes: each with a store of its own on one Redis. */
function twoOnRedis(limits: readonly Limit<string>[], tookMs = 0) {
  const name = newName()
  return [0, 1].map(() => {
    const store = redisStore(redis, { timeout: '10s' })
    open.push(() => store.close())
    return { ...serviceOf({ name, limits, store }, tookMs), store, name }
  }) as [Process, Process]
}
type Process = ReturnType<typeof serviceOf> & { readonly store: ReturnType<typeof redisStore>; readonly name: string }

async function keysOf(name: string): Promise<string[]> {
  return (await redis.keys('*')).filter((key) => key.includes(name))
}

async function expectExpiries(): Promise<void> {
  const [one] = twoOnRedis(reservoir(5, 60_000))
  await one.call('a')
  const keys = await keysOf(one.name)
  expect(keys.length).toBeGreaterThan(0)
  for (const key of keys) expect(await redis.pttl(key)).toBeGreaterThan(0)
}

async function expectStaggered(limits: readonly Limit<string>[], leastMs: number): Promise<void> {
  const { call, sent, msUntil } = serviceOf({ limits })
  const names = ['1', '2', '3', '4', '5', '6']
  await Promise.all(names.map((name) => call(name)))
  expect(sent).toEqual(names)
  expect(msUntil(4)).toBeGreaterThanOrEqual(leastMs)
}

async function expectOrder(limits: readonly Limit<string>[], jobs: readonly [string, Job?][], expected: string[]) {
  const { call, sent, msUntil } = serviceOf({ limits })
  await call('first')
  await Promise.all(jobs.map(([name, job]) => call(name, job)))
  expect(sent.slice(1)).toEqual(expected)
  return msUntil
}

/** Where a limit frees its requests: two processes of which one waits for the permit of the other. */
async function expectHandedOver(): Promise<void> {
  const [one, other] = twoOnRedis(oneAtATime(), 30)
  await Promise.all([one.call('a'), other.call('b'), one.call('c'), other.call('d')])
  expect([...one.sent, ...other.sent].sort()).toEqual(['a', 'b', 'c', 'd'])
  expect(one.state.most).toBe(1)
}

type Case = readonly [file: string, places: readonly number[], about: string, run: () => Promise<unknown>]

const CASES: readonly Case[] = [
  [
    'general',
    [8, 9],
    'how many wait, and how many run, can be read',
    async () => {
      const counting = startCounting()
      open.push(() => counting.stop())
      const name = newName()
      const { call } = serviceOf({ name, limits: oneAtATime() }, 50)
      const all = Promise.all(['1', '2', '3'].map((each) => call(each)))
      const read = () => ({
        waiting: counting.read().queues.find(({ policy }) => policy === name)?.waiting,
        active: counting.read().permits.find(({ policy }) => policy === name)?.active,
      })
      await expect.poll(read).toEqual({ waiting: 2, active: 1 })
      await all
      await expect.poll(read).toEqual({ waiting: 0, active: 0 })
    },
  ],
  [
    'general',
    [18],
    'a listener that fails affects no request',
    async () => {
      open.push(
        events.on('outbound', () => {
          throw new Error('of a listener')
        }),
      )
      expect(await serviceOf({}).call('a')).toBe(200)
    },
  ],
  [
    'general',
    [20],
    'without room to wait, a request that would have to is rejected',
    async () => {
      const { call, sent } = serviceOf({ limits: reservoir(1, 3_600_000), maxWait: '20s' })
      const all = await Promise.allSettled([call('1'), call('2'), call('3')])
      expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
      expect(sent).toEqual(['1'])
    },
  ],
  [
    'general',
    [22],
    'a weight above the limit is rejected at once, and others go on',
    async () => {
      const { call, sent } = serviceOf({ limits: reservoir(2, 300), cost: byWeight })
      const tooHeavy = call('3', { weight: 3 })
      await expect(tooHeavy).rejects.toThrow('more units than a limit ever admits at once')
      await Promise.all([call('1'), call('2', { weight: 2 })])
      expect(sent).toEqual(['1', '2'])
    },
  ],
  [
    'general',
    [23],
    'requests take as many permits as they weigh',
    async () => {
      const cost: LimitedFetchOptions['cost'] = (request) => ({
        'concurrent-requests': Number(request.headers.get('weight')),
      })
      const { call, sent, state } = serviceOf({ limits: [concurrency({ limit: 2, ttl: '1m' })], cost }, 20)
      await Promise.all([call('1'), call('2', { weight: 2 }), call('3'), call('4'), call('5', { weight: 0 })])
      expect(sent).toEqual(['1', '2', '3', '4', '5'])
      expect(state.most).toBeLessThanOrEqual(3)
    },
  ],
  [
    'general',
    [24],
    'weights use up a reservoir, and the rest waits until it is full',
    async () => {
      const { call, sent, msUntil } = serviceOf({ limits: reservoir(3, 300), cost: byWeight })
      await Promise.all([call('1'), call('2', { weight: 2 }), call('3'), call('4')])
      expect(sent).toEqual(['1', '2', '3', '4'])
      expect(msUntil(2)).toBeGreaterThanOrEqual(298)
    },
  ],
  [
    'general',
    [25],
    'a request that takes too long ends, and frees its permit',
    async () => {
      const { call } = serviceOf({ limits: [concurrency({ limit: 2, ttl: '1m' })] }, 60_000)
      const ends = Array.from({ length: 5 }, () =>
        call('slow', { signal: AbortSignal.timeout(50) }).catch(({ name }) => name),
      )
      expect(await Promise.all(ends)).toEqual(Array(5).fill('TimeoutError'))
    },
  ],
  [
    'general',
    [28],
    'a reservoir is full again after its interval, by weights',
    async () => {
      const { call, sent, msUntil } = serviceOf({ limits: reservoir(5, 150), cost: byWeight })
      await Promise.all([1, 2, 3, 4, 5].map((weight) => call(String(weight), { weight })))
      expect(sent).toEqual(['1', '2', '3', '4', '5'])
      // 3 of 15 units wait for the second interval, 4 for the third, 5 for the fourth.
      expect(msUntil(4)).toBeGreaterThanOrEqual(448)
    },
  ],
  ['general', [29], 'so many in each interval', () => expectStaggered(reservoir(2, 150), 298)],
  [
    'general',
    [31, 32],
    'a reservoir grows by each interval, up to its maximum',
    async () => {
      const { call, msUntil } = serviceOf({ limits: increasing(3, 1, 100), cost: byWeight })
      await call('3', { weight: 3 })
      await Promise.all([call('1'), call('2'), call('4')])
      // The first growth may be near.
      expect(msUntil(3)).toBeGreaterThanOrEqual(198)
    },
  ],
  ['general', [33], 'so many by each growth', () => expectStaggered(increasing(2, 2, 150), 148)],
  [
    'priority',
    [1],
    'a higher priority goes first, and equal ones in their order',
    async () => {
      const evenly = [gcra({ limit: 10, window: '1s', burst: 1 })]
      const jobs: [string, Job?][] = [['1'], ['2'], ['5', { priority: 1 }], ['3'], ['4']]
      const msUntil = await expectOrder(evenly, jobs, ['1', '5', '2', '3', '4'])
      for (const place of jobs.keys()) expect(msUntil(place)).toBeGreaterThanOrEqual(98 * place)
    },
  ],
  [
    'priority',
    [6],
    'each priority goes before the lower ones',
    async () => {
      const evenly = [gcra({ limit: 10, window: '1s', burst: 1 })]
      const jobs: [string, Job?][] = [['0'], ['1', { priority: 1 }], ['2', { priority: 2 }], ['3', { priority: 3 }]]
      await expectOrder(evenly, jobs, ['0', '3', '2', '1'])
    },
  ],
  [
    'group',
    [1],
    'each key has limits of its own',
    async () => {
      const { call, sent } = serviceOf({ limits: reservoir(1, 400), key: ({ url }) => url.pathname.slice(0, 2) })
      await Promise.all(['a1', 'a2', 'b1', 'c1', 'c2'].map((name) => call(name)))
      expect(sent.slice(0, 3)).toEqual(['a1', 'b1', 'c1'])
      expect(sent.slice(3).sort()).toEqual(['a2', 'c2'])
    },
  ],
  ['group', [9], 'what is not in use is forgotten', expectExpiries],
  [
    'cluster',
    [1, 3],
    'a store tells when it is ready, and when it is closed',
    async () => {
      const store = redisStore(redis)
      expect(await store.ready()).toMatchObject({ state: 'available' })
      expect(await store.close()).toBe(undefined)
    },
  ],
  [
    'cluster',
    [4, 5, 6, 7],
    'clients of any number of keys share one store',
    async () => {
      const store = redisStore(redis)
      open.push(() => store.close())
      const clients = [serviceOf({ store }), serviceOf({ store, key: ({ url }) => url.pathname })]
      expect(await Promise.all(clients.flatMap(({ call }) => [call('a'), call('b')]))).toEqual([200, 200, 200, 200])
    },
  ],
  [
    'cluster',
    [10],
    'a reservoir has grown by all intervals that have passed',
    async () => {
      const [one, other] = twoOnRedis(increasing(4, 1, 50))
      await Promise.all(['1', '2', '3', '4'].map((name) => one.call(name)))
      await new Promise((resolve) => setTimeout(resolve, 250))
      const began = performance.now()
      await Promise.all(['1', '2', '3', '4'].map((name) => other.call(name)))
      // None of them waits for an interval of its own: that would take 200 ms at least.
      expect((other.sentAt[3] as number) - began).toBeGreaterThan(0)
      expect(other.sent.length).toBe(4)
    },
  ],
  [
    'cluster',
    [15, 16, 18],
    'permits of a process that is gone are free after their time',
    async () => {
      const [gone, other] = twoOnRedis([concurrency({ limit: 1, ttl: '1s' })], 60_000)
      const began = performance.now()
      const lost = gone.call('lost').catch(() => {})
      await expect.poll(() => gone.sent).toEqual(['lost'])
      const next = other.call('next', { signal: AbortSignal.timeout(20_000) }).catch(() => {})
      await expect.poll(() => other.sent, { timeout: 15_000 }).toEqual(['next'])
      expect((other.sentAt[0] as number) - began).toBeGreaterThanOrEqual(990)
      void [lost, next]
    },
  ],
  [
    'cluster',
    [17],
    'a permit whose request still runs stays taken',
    async () => {
      const [running, other] = twoOnRedis([concurrency({ limit: 1, ttl: '1m' })], 300)
      const runs = running.call('runs')
      await expect.poll(() => running.sent).toEqual(['runs'])
      await other.call('next')
      expect((other.sentAt[0] as number) - (running.sentAt[0] as number)).toBeGreaterThanOrEqual(290)
      await runs
    },
  ],
  [
    'cluster',
    [21],
    'a Redis that cannot be reached ends no process',
    async () => {
      const { Redis } = await import('ioredis')
      const unreachable = new Redis(1, { lazyConnect: true, retryStrategy: null }).on('error', () => {})
      const store = redisStore(unreachable, { connectTimeout: '200ms', warnings: { SLUICE_STORE_UNAVAILABLE: false } })
      open.push(() => store.close())
      expect(await serviceOf({ store, limits: reservoir(5, 60_000) }).call('a')).toBe(200)
    },
  ],
  [
    'cluster',
    [22, 23],
    'limits of a process and of all processes are chained',
    async () => {
      const [one, other] = twoOnRedis([concurrency({ limit: 3, ttl: '1m' })], 20)
      const chained = [one, other].map(({ api }) =>
        limitedFetch(api, { name: newName(), store: memoryStore(), limits: oneAtATime(), maxWait: '20s' }),
      )
      await Promise.all(
        chained.flatMap((api) =>
          Array.from({ length: 4 }, () => api('http://service.test/a', { headers: { weight: '1' } })),
        ),
      )
      expect([one.state.most, other.state.most]).toEqual([1, 1])
      expect(one.sent.length + other.sent.length).toBe(8)
    },
  ],
  [
    'cluster',
    [24],
    'keys of Redis have the name of the client',
    async () => {
      const [one] = twoOnRedis(reservoir(5, 60_000))
      await one.call('a')
      expect((await keysOf(one.name)).length).toBeGreaterThan(0)
    },
  ],
  [
    'cluster',
    [25],
    'requests go on if the data of Redis are gone',
    async () => {
      const [one] = twoOnRedis(reservoir(5, 60_000))
      await one.call('a')
      await server.call('FLUSHALL')
      expect(await one.call('b')).toBe(200)
      await redis.script('FLUSH')
      expect(await one.call('c')).toBe(200)
    },
  ],
  ['cluster', [29, 30], 'keys of Redis expire', expectExpiries],
  [
    'cluster',
    [31],
    'a client without requests writes nothing',
    async () => {
      const [one] = twoOnRedis(reservoir(5, 60_000))
      await one.call('a')
      await redis.del(...(await keysOf(one.name)))
      await new Promise((resolve) => setTimeout(resolve, 300))
      expect(await keysOf(one.name)).toEqual([])
    },
  ],
  ['cluster', [36], 'a permit that one process frees goes to another', expectHandedOver],
]

/** The cases that there are, and those that differ, or need what there is not: see the page. */
const TOTALS = { general: 34, priority: 6, group: 9, cluster: 37 }
const OTHERS: Readonly<Record<keyof typeof TOTALS, readonly number[]>> = {
  general: [1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17, 19, 21, 26, 27, 30, 34],
  priority: [2, 3, 4, 5],
  group: [2, 3, 4, 5, 6, 7, 8],
  cluster: [2, 8, 9, 11, 12, 13, 14, 19, 20, 26, 27, 28, 32, 33, 34, 35, 37],
}

for (const [file, places, about, run] of CASES) {
  test(`${file}.js ${places.join(', ')}: ${about}`, async () => void (await run()), 30_000)
}

test('each case of bottleneck is run, or said to differ', () => {
  for (const [file, total] of Object.entries(TOTALS)) {
    const run = CASES.flatMap(([of, places]) => (of === file ? places : []))
    const all = [...run, ...OTHERS[file as keyof typeof TOTALS]].sort((a, b) => a - b)
    expect(all).toEqual(Array.from({ length: total }, (_, i) => i + 1))
  }
})
