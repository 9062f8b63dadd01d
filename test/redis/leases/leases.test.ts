import { connect } from 'node:net'
import {
  createLimiter,
  fixedWindow,
  gcra,
  keyed,
  type Limit,
  memoryStore,
  perMinute,
  perSecond,
  redisStore,
  type Store,
  slidingLog,
  slidingWindow,
  type Verdict,
} from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { Clock, freshKey } from '../../contract/store-under-test.js'
import { startProxy } from '../../support/proxy.js'
import { startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'

const server = await startRedis()
const client = new Redis(server.url)
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

let clock: Clock
let stores: Store[]
let key: string
beforeEach(() => {
  clock = new Clock()
  stores = []
  key = freshKey()
})
afterEach(async () => {
  for (const store of stores) await store.close()
})

const lease = { size: 20, ttl: '1s' } as const

/** A limiter on a separate store, as in another process. */
function inProcess(limits: readonly Limit<string>[] = [slidingLog({ limit: 100, window: '1m', lease })]) {
  const store = redisStore(client, { clock: clock.read, timeout: 5000 })
  stores.push(store)
  return createLimiter({ name: 'leased', store, limits })
}

type Leased = ReturnType<typeof inProcess>

async function consume(limiter: Leased, times: number): Promise<Verdict[]> {
  const verdicts = []
  for (let n = 0; n < times; n++) verdicts.push(await limiter.consume(key))
  return verdicts
}

/** The number of scripts on the key during `run`. The store's own looks at the index of blocks do not count. */
async function callsDuring(run: () => Promise<unknown>): Promise<number> {
  const socket = connect(server.port, '127.0.0.1')
  let seen = ''
  socket.on('data', (data) => {
    seen += data.toString('latin1')
  })
  socket.write('MONITOR\r\n')
  await until('MONITOR is on', () => seen.startsWith('+OK'))
  await run()
  const end = freshKey()
  await client.echo(end)
  await until('MONITOR has shown every command', () => seen.includes(end))
  socket.destroy()
  return seen.split('\n').filter((line) => /"eval(sha)?"/i.test(line) && line.includes(key)).length
}

const admitted = (verdicts: readonly Verdict[]) => verdicts.filter(({ allowed }) => allowed).length

test('a key in rare use leases no units', async () => {
  const [here, elsewhere] = [inProcess(), inProcess()]
  for (let n = 1; n <= 5; n++) {
    await consume(here, 1)
    expect((await elsewhere.peek(key)).remaining).toBe(100 - n)
    clock.now += 1000
  }
})

test('leases grow with the use of a key, up to the configured size', async () => {
  const here = inProcess([gcra({ limit: 10_000, window: '1m', lease })])
  expect(await callsDuring(() => consume(here, 8))).toBeGreaterThan(3)
  await consume(here, 100)
  expect(await callsDuring(() => consume(here, 200))).toBeLessThanOrEqual(10)
})

test('one process with a lease is admitted the whole limit, with exact remaining units', async () => {
  const here = inProcess()
  const verdicts = await consume(here, 103)
  expect(admitted(verdicts)).toBe(100)
  expect(verdicts.slice(0, 100).map(({ remaining }) => remaining)).toEqual(
    Array.from({ length: 100 }, (_, n) => 99 - n),
  )
  const [first] = verdicts
  expect(first?.limits[0]).toMatchObject({ limit: 100, windowMs: 60_000, capacity: 100 })
})

test('a refusal with a lease names the exact retry time, a ttl later on a log', async () => {
  const here = inProcess()
  const [last] = (await consume(here, 101)).slice(-1)
  expect(last).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 61_000 })
  clock.now += 60_999
  expect((await here.consume(key)).allowed).toBe(false)
  clock.now += 1
  expect((await here.consume(key)).allowed).toBe(true)
})

test('another process is admitted close to the limit although the first one holds a lease', async () => {
  const [here, elsewhere] = [inProcess(), inProcess()]
  await consume(here, 60)
  const left = 40
  const others = admitted(await consume(elsewhere, left))
  // Units of the lease are spent in the process that holds it.
  expect(others).toBeGreaterThanOrEqual(left - 20)
  expect(others + admitted(await consume(here, left))).toBe(left)
})

test('unspent units return to the store when a lease expires, without further requests', async () => {
  const [here, elsewhere] = [inProcess(), inProcess()]
  await consume(here, 30)
  const held = 70 - (await elsewhere.peek(key)).remaining
  expect(held).toBeGreaterThan(0)
  clock.now += 1000
  await until('the units have returned', async () => (await elsewhere.peek(key)).remaining === 70)
})

test('unspent units of a lease return when the store closes', async () => {
  const [here, elsewhere] = [inProcess(), inProcess()]
  await consume(here, 30)
  expect((await elsewhere.peek(key)).remaining).toBeLessThan(70)
  await stores[0]?.close()
  expect((await elsewhere.peek(key)).remaining).toBe(70)
})

test('a lease that is pending when the store closes is returned, too', async () => {
  const [here, elsewhere] = [inProcess(), inProcess()]
  await consume(here, 31)
  const pending = Array.from({ length: 30 }, () => here.consume(key))
  await stores[0]?.close()
  expect(admitted(await Promise.all(pending))).toBe(30)
  expect((await elsewhere.peek(key)).remaining).toBe(39)
})

test('no unit of a lease is spent after its ttl, nor after the clock steps back', async () => {
  const here = inProcess()
  await consume(here, 30)
  expect(await callsDuring(() => consume(here, 1))).toBe(0)
  clock.now += 1000
  // At least one: the search for expired leases may return the units by a script of its own.
  expect(await callsDuring(() => consume(here, 1))).toBeGreaterThan(0)
  await consume(here, 10)
  expect(await callsDuring(() => consume(here, 1))).toBe(0)
  clock.now -= 5000
  expect(await callsDuring(() => consume(here, 1))).toBeGreaterThan(0)
})

test('requests that wait for a lease are admitted although the clock steps back', async () => {
  const [here, elsewhere] = [inProcess(), inProcess()]
  await consume(here, 30)
  const pending = Array.from({ length: 40 }, () => here.consume(key))
  clock.now -= 5000
  const verdicts = await Promise.all(pending)
  expect(admitted(verdicts)).toBe(40)
  // Some are admitted from the units held before.
  expect(new Set(verdicts.map(({ resetAfterMs }) => resetAfterMs))).toEqual(new Set([61_000, 66_000]))
  await until('the rest has returned', async () => (await elsewhere.peek(key)).remaining === 30)
})

test('concurrent requests with leases are decided in order, and admit exactly the limit', async () => {
  const [here, elsewhere] = [inProcess(), inProcess()]
  await Promise.all([consume(here, 10), consume(elsewhere, 10)])
  const order: number[] = []
  const rush = (limiter: Leased) =>
    Array.from({ length: 150 }, async (_, n) => {
      const verdict = await limiter.consume(key)
      if (limiter === here && verdict.allowed) order.push(n)
      return verdict
    })
  const verdicts = await Promise.all([...rush(here), ...rush(elsewhere)])
  expect(admitted(verdicts)).toBe(80)
  expect(order).toEqual([...order].sort((a, b) => a - b))
})

test('leases serve costs of any size exactly', async () => {
  const here = inProcess()
  let units = 0
  for (const cost of [1, 1, 1, 1, 7, 1, 30, 2, 1, 1, 3, 40, 5, 5, 1, 1]) {
    const verdict = await here.consume(key, { cost })
    expect(verdict.allowed).toBe(units + cost <= 100)
    if (verdict.allowed) units += cost
    expect(verdict.remaining).toBe(100 - units)
  }
  expect(units).toBe(100)
})

test('a refund returns to the lease during its ttl, and to the store after it', async () => {
  const [here, elsewhere] = [inProcess(), inProcess()]
  const verdicts = await consume(here, 30)
  const held = 70 - (await elsewhere.peek(key)).remaining
  const [early, late] = verdicts.slice(-2) as [Verdict, Verdict]
  expect(await callsDuring(() => here.refund(key, early))).toBe(0)
  expect((await here.peek(key)).remaining).toBe(71)
  clock.now += 1000
  expect(await here.refund(key, late)).toBe(true)
  expect(await here.refund(key, late)).toBe(false)
  expect(held).toBeGreaterThan(0)
  await until('the rest has returned', async () => (await elsewhere.peek(key)).remaining === 72)
})

test('a bucket with a lease refunds the part of each charge that time has not restored', async () => {
  const here = inProcess([gcra({ limit: 60, window: '1h', lease })])
  const verdicts = await consume(here, 30)
  clock.now += 10_000
  expect((await here.peek(key)).remaining).toBe(29)
  for (const verdict of verdicts) await here.refund(key, verdict)
  const { remaining } = await here.peek(key)
  // A sixth of a unit has returned since, which may belong to any of the charges.
  expect(remaining).toBeGreaterThanOrEqual(55)
  expect(remaining).toBeLessThanOrEqual(59)
})

test('a second refund of a bucket with a lease returns no more than is still owed', async () => {
  const here = inProcess([gcra({ limit: 10, window: '10s', burst: 21, lease })])
  const first = await here.consume(key, { cost: 5 })
  const second = await here.consume(key, { cost: 5 })
  clock.now += 1000
  await here.refund(key, first)
  // Both charges are paid off.
  clock.now += 6000
  await here.consume(key, { cost: 4 })
  await here.refund(key, second)
  expect((await here.peek(key)).remaining).toBe(16)
})

test('a lease that arrives after its ttl serves the decision that requested it, and no waiting one', async () => {
  const wire = await startProxy(server.port)
  const distant = new Redis(wire.port)
  const store = redisStore(distant, { clock: clock.read, timeout: 5000 })
  const limits = [slidingLog<string>({ limit: 100, window: '1m', lease })]
  const here = createLimiter({ name: 'leased', store, limits })
  const elsewhere = inProcess()
  await consume(here, 30)
  wire.toClient.hold()
  let late = 40
  const verdicts = Array.from({ length: 40 }, async () => {
    const verdict = await here.consume(key)
    late--
    return verdict
  })
  await until('the lease is taken', async () => (await elsewhere.peek(key)).remaining < 100 - 30 - (40 - late))
  const waited = late
  clock.now += 1000
  wire.toClient.pass()
  expect(admitted(await Promise.all(verdicts))).toBe(40)
  expect(waited).toBeGreaterThan(1)
  await store.close()
  // The units of the lease have lapsed, but not those admitted a second later.
  clock.now += 60_500
  expect((await elsewhere.peek(key)).remaining).toBe(100 - (waited - 1))
  distant.disconnect()
  await wire.stop()
})

test('a reset drops the lease of this process, and leaves exactly the whole limit', async () => {
  const here = inProcess()
  const [last] = (await consume(here, 30)).slice(-1)
  await here.reset(key)
  expect((await here.peek(key)).remaining).toBe(100)
  await here.refund(key, last as Verdict)
  expect(admitted(await consume(here, 120))).toBe(100)
})

test('after a reset by another process, a peek reports no more than the limit', async () => {
  const [here, elsewhere] = [inProcess(), inProcess()]
  await consume(here, 30)
  await elsewhere.reset(key)
  expect((await here.peek(key)).remaining).toBe(100)
})

test('a reset drops the leases of every limiter that shares the limit on its store', async () => {
  const here = inProcess()
  const again = createLimiter({ name: 'leased', store: stores[0] as Store, limits: here.limits })
  await consume(again, 30)
  await here.reset(key)
  expect(admitted(await consume(again, 120))).toBe(100)
})

test('a block refuses at once in its process, and in others when their leases end', async () => {
  const [here, elsewhere] = [inProcess(), inProcess()]
  await Promise.all([consume(here, 20), consume(elsewhere, 20)])
  await here.block(key, { for: '1h' })
  expect((await here.consume(key)).reason).toBe('blocked')
  expect((await elsewhere.consume(key)).allowed).toBe(true)
  clock.now += 1000
  expect((await elsewhere.consume(key)).reason).toBe('blocked')
  await here.unblock(key)
  expect((await here.consume(key)).allowed).toBe(true)
})

test('a peek reports the units available to this process, lease included, and changes nothing', async () => {
  const here = inProcess()
  await consume(here, 30)
  expect(await here.peek(key, { cost: 70 })).toMatchObject({ allowed: true, remaining: 70 })
  expect(await here.peek(key, { cost: 71 })).toMatchObject({ allowed: false, remaining: 70 })
  expect(await here.peek(key, { cost: 0 })).toMatchObject({ allowed: true, remaining: 70 })
  expect(admitted(await consume(here, 80))).toBe(70)
})

test('leases cover all limits of a policy together, and a refusal by one charges none', async () => {
  const limits = [perSecond(50, { lease }), perMinute(70, { lease })]
  const [here, elsewhere] = [inProcess(limits), inProcess(limits)]
  expect(admitted(await consume(here, 60))).toBe(50)
  clock.now += 2000
  expect(admitted(await consume(here, 30))).toBe(20)
  expect((await elsewhere.peek(key)).limits.map(({ remaining }) => remaining)).toEqual([30, 0])
})

test('leases cover limits of several keys together', async () => {
  const ofUser = keyed('part', (user: string) => user.split('/')[1])
  const limits = [
    slidingLog<string>({ limit: 100, window: '1m', lease }),
    slidingLog<string>({ limit: 150, window: '1m', key: ofUser, lease }),
  ]
  const here = inProcess(limits)
  const ask = async (who: string, times: number) => {
    const verdicts = []
    for (let n = 0; n < times; n++) verdicts.push(await here.consume(`${who}/${key}`))
    return admitted(verdicts)
  }
  expect(await ask('a', 110)).toBe(100)
  expect(await ask('b', 110)).toBe(50)
})

test('a lease ends with the window of its units', async () => {
  const here = inProcess([fixedWindow({ limit: 100, window: '10s', lease: { size: 20, ttl: '10s' } })])
  clock.now += 9000
  await consume(here, 30)
  expect(await callsDuring(() => consume(here, 1))).toBe(0)
  clock.now += 1000
  expect(await callsDuring(() => consume(here, 1))).toBeGreaterThan(0)
  expect(admitted(await consume(here, 120))).toBe(99)
})

test('a limit retains its count when a lease is added that leaves its parameters', async () => {
  const limit = { limit: 100, window: '1m' } as const
  const without = inProcess([slidingWindow(limit)])
  const withLease = inProcess([slidingWindow({ ...limit, lease })])
  await consume(without, 10)
  expect((await withLease.peek(key)).remaining).toBe(90)
})

test('a limit has a separate count when a lease changes its parameters', async () => {
  const without = inProcess([slidingLog({ limit: 100, window: '61s' })])
  const withLease = inProcess()
  await consume(without, 10)
  expect((await withLease.peek(key)).remaining).toBe(100)
})

test('the memory store decides by the same numbers for a limit with a lease', async () => {
  const limits = [gcra<string>({ limit: 60, window: '1m', burst: 30, lease })]
  const memory = createLimiter({ name: 'leased', store: memoryStore({ clock: clock.read }), limits })
  const here = inProcess(limits)
  const [inMemory, inRedis] = [await consume(memory, 31), await consume(here, 31)]
  expect(admitted(inMemory)).toBe(29)
  expect(admitted(inRedis)).toBe(29)
  expect(inRedis.at(-1)?.retryAfterMs).toBe(inMemory.at(-1)?.retryAfterMs)
  expect(inMemory[0]?.limits[0]?.capacity).toBe(29)
})

test('leased units are spent while Redis is away, up to the end of their ttl', async () => {
  const fragile = await startRedis()
  const own = new Redis(fragile.url)
  const store = redisStore(own, { clock: clock.read, timeout: 2000 })
  const here = createLimiter({
    name: 'leased',
    store,
    limits: [slidingLog<string>({ limit: 100, window: '1m', lease })],
  })
  await expect.poll(() => here.consume(key).then(({ kind }) => kind)).toBe('decided')
  const before = admitted(await consume(here, 34))
  const held = (await here.peek(key)).remaining
  fragile.kill('SIGSTOP')
  clock.now += 999
  expect((await here.consume(key)).kind).toBe('decided')
  clock.now += 1
  expect((await here.consume(key)).kind).toBe('unavailable')
  fragile.kill('SIGCONT')
  expect([before, held]).toEqual([34, 65])
  await store.close()
  own.disconnect()
  await fragile.stop()
})

test('decisions remain exact on more keys than a store holds leases for', async () => {
  const here = inProcess()
  const keys = Array.from({ length: 11_000 }, (_, n) => `${key}/${n}`)
  for (let round = 0; round < 2; round++) {
    const verdicts = await Promise.all(keys.map((key) => here.consume(key)))
    expect(admitted(verdicts)).toBe(11_000)
  }
  await consume(here, 20)
  expect(await callsDuring(() => consume(here, 1))).toBe(0)
})
