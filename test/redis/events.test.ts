// Runs alone: it listens to the events of all stores of its process.
import {
  createLimiter,
  type DecisionEvent,
  events,
  fixedWindow,
  type RedisStoreOptions,
  redisStore,
  type StoreEvent,
} from '@sluice/core'
import { startCounting } from '@sluice/core/metrics'
import { expect, test } from 'vitest'
import { singleClients } from '../support/clients.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

const open = closedAfterEach()

let policies = 0
const freshName = () => `told-${policies++}`

async function started(): Promise<RedisServer> {
  const server = await startRedis()
  open.push(() => server.stop())
  return server
}

async function storeOn({ port }: RedisServer, options: RedisStoreOptions = {}) {
  const { client, ready, close } = singleClients['ioredis 6'](port)
  open.push(close)
  await ready
  const store = redisStore(client, { timeout: 2000, ...options })
  open.push(() => store.close())
  await store.ready()
  return store
}

function decisionsOf(policy: string): DecisionEvent[] {
  const seen: DecisionEvent[] = []
  open.push(events.on('decision', (event) => void (event.policy === policy && seen.push(event))))
  return seen
}

function counted() {
  const counting = startCounting()
  open.push(counting.stop)
  return counting
}

const FROZEN = { clock: () => 1_800_000_000_000 }

test('cached refusals and leased units are not reported as decisions of Redis', async () => {
  const store = await storeOn(await started(), FROZEN)
  const [cached, leased] = [freshName(), freshName()]
  const seen = [decisionsOf(cached), decisionsOf(leased)] as const
  const counting = counted()

  const one = createLimiter({ name: cached, store, limit: 1, window: '1m' })
  for (let n = 0; n < 4; n++) await one.consume('ann')
  expect(seen[0].map(({ outcome, source }) => [outcome, source])).toEqual([
    ['admitted', 'store'],
    ['limited', 'store'],
    ['limited', 'deny-cache'],
    ['limited', 'deny-cache'],
  ])

  const limits = [fixedWindow({ limit: 1000, window: '1h', lease: { size: 50, ttl: '10s' } })]
  const many = createLimiter({ name: leased, store, limits })
  for (let n = 0; n < 200; n++) await many.consume('ann')
  const of = (source: string) => seen[1].filter((event) => event.source === source).length
  const [ofStore, ofLeases] = [of('store'), of('lease')]
  expect(ofStore + ofLeases).toBe(200)
  expect(ofLeases).toBeGreaterThan(100)

  const snapshot = counting.read()
  const rows = snapshot.decisions.map(({ policy, outcome, source, count }) => [policy, outcome, source, count])
  expect(rows).toEqual(
    expect.arrayContaining([
      [cached, 'admitted', 'store', 1],
      [cached, 'limited', 'store', 1],
      [cached, 'limited', 'deny-cache', 2],
      [leased, 'admitted', 'store', ofStore],
      [leased, 'admitted', 'lease', ofLeases],
    ]),
  )
  // Requests reached Redis one at a time, so each batch is one decision.
  const batches = store.stats()?.batches
  expect(batches).toMatchObject({ count: 2 + ofStore, sum: 2 + ofStore })
  expect(snapshot.stores.find(({ batches: own }) => own?.sum === batches?.sum)).toMatchObject({
    kind: 'redis',
    state: 'available',
    pending: 0,
  })
})

test('an outage emits events, and decisions during it name their local source', async () => {
  const server = await started()
  const store = await storeOn(server)
  const [name, banning] = [freshName(), freshName()]
  const limiter = createLimiter({ name, store, limit: 2, window: '1h' })
  const ban = { after: 2, within: '1h', for: ['1h'] } as const
  const strict = createLimiter({ name: banning, store, limit: 1, window: '1h', ban })
  const states: StoreEvent[] = []
  const struck: unknown[] = []
  store.on('store', (event) => states.push(event))
  strict.on('strike', ({ isLocal }) => struck.push(['strike', isLocal]))
  strict.on('ban', ({ isLocal, rung, strikes }) => struck.push(['ban', isLocal, rung, strikes]))
  const seen = decisionsOf(name)
  await limiter.consume('ann')
  await limiter.block('eve', { for: '1h' })
  expect(await store.health()).toMatchObject({ state: 'available', cause: undefined })

  server.kill('SIGKILL')
  await until('the store reports the outage', () => states.length > 0)
  expect(states[0]).toMatchObject({ state: 'unavailable', cause: expect.any(Error) })
  for (const key of ['ann', 'bob', 'bob', 'bob', 'eve']) await limiter.consume(key)
  expect(seen.map(({ outcome, source }) => [outcome, source])).toEqual([
    ['admitted', 'store'],
    ['admitted', 'local'],
    ['admitted', 'local'],
    ['admitted', 'local'],
    ['limited', 'local'],
    ['blocked', 'mirror'],
  ])
  for (let n = 0; n < 4; n++) await strict.consume('mallory')
  expect(struck).toEqual([
    ['strike', true],
    ['strike', true],
    ['ban', true, 1, 2],
  ])
  const away = await store.health()
  expect(away).toMatchObject({ state: 'unavailable', roundTripMs: undefined, cause: expect.any(Error) })

  await server.restart()
  await until('the store reports the end of the outage', () => states.length > 1)
  expect(states.at(-1)).toMatchObject({ state: 'available', cause: undefined })
  const back = await until('the health has a round trip', async () => {
    const health = await store.health()
    return health.roundTripMs !== undefined && health
  })
  expect(back.since).toBeGreaterThanOrEqual(away.since)
  seen.length = 0
  await limiter.consume('carl')
  expect(seen.map(({ source }) => source)).toEqual(['store'])
})

test('concurrent health checks of a store share one round trip to Redis', async () => {
  const store = await storeOn(await started())
  const all = await Promise.all(Array.from({ length: 50 }, () => store.health()))
  expect(new Set(all.map(({ roundTripMs }) => roundTripMs)).size).toBe(1)
  expect(all[0]?.roundTripMs).toBeGreaterThan(0)
})

test('a closed store is absent from the counts of stores, and reports itself as unavailable', async () => {
  const store = await storeOn(await started())
  createLimiter({ name: freshName(), store, limit: 2, window: '1h' })
  const counting = counted()
  const ours = () => counting.read().stores.filter(({ kind }) => kind === 'redis').length
  const before = ours()
  await store.close()
  expect(ours()).toBe(before - 1)
  expect(await store.health()).toMatchObject({ state: 'unavailable' })
})
