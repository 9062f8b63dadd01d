import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ConsistencyOptions,
  createLimiter,
  fixedWindow,
  keyed,
  type Limit,
  type Limiter,
  memoryStore,
  type RedisStore,
  redisStore,
  type Store,
  slidingWindow,
  type UnavailableOptions,
  type Verdict,
} from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { freshKey } from '../../contract/store-under-test.js'
import { startProxy } from '../../support/proxy.js'
import { startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'

const server = await startRedis()
const client = new Redis(server.url)
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

let stores: Store[]
let key: string
beforeEach(() => {
  stores = []
  key = freshKey()
})
afterEach(async () => {
  for (const store of stores) await store.close()
})

/** Rare enough that only closing the store sends the counts. */
const seldom = { syncEvery: '1m' } as const
const often = { syncEvery: '20ms' } as const

interface Options {
  readonly limits?: readonly Limit<string>[]
  readonly consistency?: ConsistencyOptions
  readonly on?: Redis
  readonly unavailable?: UnavailableOptions['unavailable']
  readonly ban?: { by: string; after: number; within: string; for: readonly string[] }
  readonly name?: string
  readonly onDeny?: 'none' | 'charge'
}

const HOUR: readonly Limit<string>[] = [fixedWindow({ limit: 100, window: '1h', anchor: 'first-request' })]

/** A limiter on a separate store, as in another process. */
function inProcess({ on = client, limits = HOUR, consistency = often, name = 'relaxed', ...rest }: Options = {}) {
  const store = redisStore(on, { timeout: 5000 })
  stores.push(store)
  const limiter = createLimiter({ name, store, limits, consistency, ...(rest as object) })
  return Object.assign(limiter, { store: store as RedisStore })
}

/** Consumes one unit at a time until decisions are local, and returns the number admitted. */
async function untilCountedHere(limiter: Limiter): Promise<number> {
  let units = 0
  await until(
    'the key is counted locally',
    async () => (await callsDuring(async () => (units += admitted(await consume(limiter, 1))))) === 0,
  )
  return units
}

async function consume(limiter: Limiter, times: number, on = key): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  for (let n = 0; n < times; n++) verdicts.push(await limiter.consume(on))
  return verdicts
}

const admitted = (verdicts: readonly Verdict[]) => verdicts.filter(({ allowed }) => allowed).length
const leftOf = async (limiter: Limiter, on = key) => (await limiter.peek(on)).remaining

/** The number of scripts that Redis has executed. */
async function calls(): Promise<number> {
  const stats = String(await server.call('INFO', 'commandstats')).matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)
  return [...stats].reduce((sum, [, count]) => sum + Number(count), 0)
}

async function callsDuring(run: () => Promise<unknown>): Promise<number> {
  const before = await calls()
  await run()
  return (await calls()) - before
}

test('Redis makes the first two decisions on a key with relaxed consistency, and the process the later ones', async () => {
  const here = inProcess({ consistency: seldom })
  expect(await callsDuring(() => consume(here, 1))).toBe(1)
  // The decision, and the fetch of the count.
  expect(await callsDuring(() => consume(here, 1))).toBe(2)
  expect(await callsDuring(() => consume(here, 50))).toBe(0)
  expect(await leftOf(here)).toBe(48)
})

test('a key in a single use costs Redis one decision, and no exchange', async () => {
  const here = inProcess()
  const before = await calls()
  for (let n = 0; n < 30; n++) await consume(here, 1, `${key}/${n}`)
  // Long enough for several exchanges, if there were counts to send.
  await new Promise((resolve) => setTimeout(resolve, 100))
  await here.store.close()
  expect((await calls()) - before).toBe(30)
})

test('Redis makes all concurrent decisions on a new key, and counts each once', async () => {
  const here = inProcess({ consistency: seldom })
  const together = () => Promise.all(Array.from({ length: 30 }, () => here.consume(key)))
  for (let times = 1; times <= 3; times++) {
    const [least] = (await together()).map(({ remaining }) => remaining).sort((a, b) => a - b)
    expect(least).toBe(100 - 30 * times)
  }
  await here.store.close()
  expect(await leftOf(inProcess())).toBe(10)
})

test('every process knows the admissions of the others after their exchanges', async () => {
  const [here, elsewhere] = [inProcess(), inProcess()]
  await consume(here, 30)
  await consume(elsewhere, 20)
  for (const limiter of [here, elsewhere]) {
    await until('the process knows all admissions', async () => {
      // A request that keeps the key counted locally.
      await limiter.consume(key, { cost: 0 })
      return (await leftOf(limiter)) === 50
    })
  }
})

test('no relaxed decision waits for an exchange, or for Redis', async () => {
  const wire = await startProxy(server.port)
  const own = new Redis(wire.port)
  const here = inProcess({ on: own, consistency: { syncEvery: '100ms' } })
  await untilCountedHere(here)
  wire.toServer.hold()
  // By then some exchanges are pending.
  const until = Date.now() + 200
  let decided = 0
  while (Date.now() < until) {
    decided += (await consume(here, 1)).length
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(decided).toBeGreaterThan(10)
  wire.toServer.pass()
  await here.store.close()
  own.disconnect()
  await wire.stop()
})

test('one process alone is admitted exactly a relaxed limit, however many requests are concurrent', async () => {
  const here = inProcess()
  const verdicts = await Promise.all(Array.from({ length: 150 }, () => here.consume(key)))
  expect(admitted(verdicts)).toBe(100)
  expect(admitted(await consume(here, 50))).toBe(0)
})

test('a refusal by a relaxed limit names the exact retry time', async () => {
  const here = inProcess({ limits: [fixedWindow({ limit: 10, window: '2s', anchor: 'first-request' })] })
  const [last] = (await consume(here, 11)).slice(-1)
  expect(last?.allowed).toBe(false)
  await new Promise((resolve) => setTimeout(resolve, last?.retryAfterMs))
  expect((await here.consume(key)).allowed).toBe(true)
})

test('a store sends its relaxed counts to Redis when it closes', async () => {
  // A window so long that none ends during the test, as it would at a full hour.
  const limits = [...HOUR, slidingWindow<string>({ limit: 100, window: '1000d' })]
  const here = inProcess({ limits, consistency: seldom })
  await consume(here, 40)
  await here.store.close()
  const { limits: left } = await inProcess({ limits }).peek(key)
  expect(left.map(({ remaining }) => remaining)).toEqual([60, 60])
})

test('charges during an exchange reach Redis as well', async () => {
  const wire = await startProxy(server.port)
  const own = new Redis(wire.port)
  const here = inProcess({ on: own })
  await consume(here, 10)
  wire.toClient.hold()
  await until('an exchange has reached Redis', async () => (await leftOf(inProcess())) === 90)
  await consume(here, 10)
  wire.toClient.pass()
  await here.store.close()
  expect(await leftOf(inProcess())).toBe(80)
  own.disconnect()
  await wire.stop()
})

test('a key out of use is dropped, and its next decision is of Redis', async () => {
  const here = inProcess()
  await consume(here, 2)
  await until('the key is dropped', async () => {
    await new Promise((resolve) => setTimeout(resolve, 60))
    return (await callsDuring(() => here.peek(key))) > 0
  })
})

test('one process admits costs of any size exactly up to a relaxed limit', async () => {
  const here = inProcess()
  let units = 0
  for (const cost of [1, 7, 1, 30, 2, 0, 3, 40, 50, 5, 5, 6, 1, 1]) {
    const verdict = await here.consume(key, { cost })
    expect(verdict.allowed).toBe(units + cost <= 100)
    if (verdict.allowed) units += cost
    expect(verdict.remaining).toBe(100 - units)
  }
  expect((await here.consume(key, { cost: 101 })).reason).toBe('impossible')
})

test('a refusal by one of several relaxed limits charges none', async () => {
  const ofUser = keyed('part', (user: string) => user.split('/')[1])
  const limits: Limit<string>[] = [
    fixedWindow({ limit: 10, window: '1000d' }),
    slidingWindow({ limit: 15, window: '1000d', key: ofUser }),
  ]
  const here = inProcess({ limits })
  const ask = (who: string, times: number) => consume(here, times, `${who}/${key}`)
  expect(admitted(await ask('a', 12))).toBe(10)
  const [, ...more] = await ask('b', 12)
  expect(admitted(more)).toBe(4)
  expect(more.at(-1)?.limits.map(({ remaining }) => remaining)).toEqual([5, 0])
})

test('the first decision on one identity includes the local count of the other', async () => {
  const everyone = keyed('all', () => 'everyone')
  const limits: Limit<string>[] = [
    fixedWindow({ limit: 10, window: '1000d' }),
    fixedWindow({ limit: 30, window: '1000d', key: everyone }),
  ]
  const here = inProcess({ limits, consistency: seldom, name: `first-${key}` })
  let total = 0
  for (let n = 0; n < 20; n++) total += admitted(await consume(here, 3, `${key}/${n}`))
  expect(total).toBe(30)
})

test('a refund of a relaxed charge counts at once locally, and elsewhere after the exchange', async () => {
  for (const limits of [HOUR, [slidingWindow<string>({ limit: 100, window: '1000d' })]]) {
    key = freshKey()
    const here = inProcess({ limits, consistency: seldom })
    const [first, second] = (await consume(here, 3)) as [Verdict, Verdict]
    expect(await here.refund(key, second)).toBe(true)
    expect(await here.refund(key, second)).toBe(false)
    expect(await leftOf(here)).toBe(98)
    expect(await here.refund(key, first)).toBe(true)
    expect(await leftOf(here)).toBe(99)
    await here.store.close()
    expect(await leftOf(inProcess({ limits }))).toBe(99)
  }
})

test('a refund on a key that is dropped locally reaches Redis', async () => {
  const here = inProcess()
  const [, second] = (await consume(here, 2)) as [Verdict, Verdict]
  await until('the key is dropped', async () => {
    await new Promise((resolve) => setTimeout(resolve, 60))
    return (await callsDuring(() => here.peek(key))) > 0
  })
  expect(await here.refund(key, second)).toBe(true)
  expect(await leftOf(inProcess())).toBe(99)
})

test('a refund counts at once where only some of its limits are counted locally', async () => {
  const everyone = keyed('all', () => 'everyone')
  const limits = [
    fixedWindow<string>({ limit: 5, window: '1h' }),
    fixedWindow<string>({ limit: 9, window: '1h', key: everyone }),
  ]
  const here = inProcess({ limits, consistency: seldom, name: `partly-${key}` })
  // Two keys make the limit for everyone busy, while Redis decides on each of them.
  await here.consume(`${key}/0`)
  const verdict = await here.consume(`${key}/1`)
  await here.refund(`${key}/1`, verdict)
  await consume(here, 2, `${key}/0`)
  const { limits: left } = await here.peek(`${key}/0`)
  expect(left.map(({ remaining }) => remaining)).toEqual([2, 6])
})

test('a refund of a decision that only Redis made reaches Redis', async () => {
  const here = inProcess()
  const [only] = (await consume(here, 1)) as [Verdict]
  expect(await here.refund(key, only)).toBe(true)
  expect(await leftOf(inProcess())).toBe(100)
})

test('a reset drops the local count of a key, sent or not', async () => {
  const here = inProcess({ consistency: seldom })
  const [, last] = (await consume(here, 30)) as [Verdict, Verdict]
  await here.reset(key)
  expect(await leftOf(here)).toBe(100)
  await here.refund(key, last)
  expect(admitted(await consume(here, 120))).toBe(100)
  await here.store.close()
  expect(await leftOf(inProcess())).toBe(0)
})

test('the counts of a forgotten identity are not sent to Redis', async () => {
  const here = inProcess({ consistency: seldom })
  await consume(here, 30)
  await here.store.forget({ key })
  await here.store.close()
  expect(await leftOf(inProcess())).toBe(100)
})

test('limiters of one name on one store share their relaxed counts', async () => {
  const here = inProcess({ consistency: seldom })
  const again = createLimiter({ name: 'relaxed', store: here.store, limits: HOUR, consistency: seldom })
  await Promise.all([consume(here, 30), consume(again, 30)])
  expect(await leftOf(here)).toBe(40)
})

test('a block holds at once in its process, and in others with the next exchange', async () => {
  const [here, elsewhere] = [inProcess(), inProcess()]
  await Promise.all([consume(here, 5), consume(elsewhere, 5)])
  await here.block(key, { for: '1h', reason: 'scraping' })
  expect((await here.consume(key)).block?.reason).toBe('scraping')
  await until('the block holds', async () => (await elsewhere.consume(key)).reason === 'blocked')
  await here.unblock(key)
  expect((await here.consume(key)).allowed).toBe(true)
})

test('refusals by relaxed limits are strikes, and their ban holds in other processes', async () => {
  const ban = { by: 'key', after: 3, within: '1h', for: ['1h'] }
  const limits = [fixedWindow<string>({ limit: 5, window: '1h' })]
  const [here, elsewhere] = [inProcess({ limits, ban, name: 'bans' }), inProcess({ limits, ban, name: 'bans' })]
  await consume(elsewhere, 1)
  const verdicts = await consume(here, 8)
  const reasons = verdicts.map(({ allowed, reason }) => (allowed ? 'allowed' : reason))
  expect(reasons.slice(-4)).toEqual(['limited', 'limited', 'banned', 'banned'])
  await until('the ban holds', async () => (await elsewhere.consume(key)).reason === 'banned')
})

test('a ban that begins in the ms in which another was ended holds at once', async () => {
  let now = 1_000_000_000
  const store = redisStore(client, { timeout: 5000, clock: () => now })
  stores.push(store)
  const ban = { by: 'key', after: 2, within: '1h', for: ['1h'] } as const
  const limits = [fixedWindow<string>({ limit: 3, window: 10 })]
  const limiter = createLimiter({ name: 'ended', store, limits, ban, consistency: { syncEvery: 10 } })
  await consume(limiter, 3)
  await limiter.unblock(key)
  await consume(limiter, 2)
  now += 10
  expect((await limiter.consume(key)).reason).toBe('banned')
})

test('charged refusals by a relaxed limit still count after a refund', async () => {
  const store = redisStore(client, { timeout: 5000 })
  stores.push(store)
  const limits = [fixedWindow<string>({ limit: 5, window: '1h' })]
  const here = createLimiter({ name: 'charged', store, limits, consistency: seldom, onDeny: 'charge' })
  const [last] = (await consume(here, 25)).slice(-1) as [Verdict]
  await here.refund(key, last)
  await store.close()
  const again = redisStore(client, { timeout: 5000 })
  stores.push(again)
  const exact = createLimiter({ name: 'charged', store: again, limits, consistency: seldom, onDeny: 'charge' })
  // 25 units count, so a refund of one makes no room.
  expect((await exact.peek(key)).allowed).toBe(false)
})

test('a refusal is charged once where only some of its limits are counted locally', async () => {
  const everyone = keyed('all', () => 'everyone')
  const limits = [
    fixedWindow<string>({ limit: 5, window: '1000d', key: everyone }),
    fixedWindow<string>({ limit: 50, window: '1000d' }),
  ]
  const charging = () => inProcess({ limits, consistency: seldom, name: `partly-${key}`, onDeny: 'charge' })
  const here = charging()
  const [first, second] = (await consume(here, 2, `${key}/0`)) as [Verdict, Verdict]
  for (const n of [1, 2, 3]) expect((await here.consume(`${key}/${n}`)).allowed).toBe(true)
  expect((await here.consume(`${key}/4`)).allowed).toBe(false)
  for (const verdict of [first, second]) await here.refund(`${key}/0`, verdict)
  await here.store.close()
  // Six units were charged, with that of the refusal, and two of them are refunded.
  const { limits: left } = await charging().peek(`${key}/4`)
  expect(left.map(({ remaining }) => remaining)).toEqual([1, 49])
})

test('relaxed counts continue from the next charges after Redis loses its data, without a failed decision', async () => {
  const here = inProcess()
  await consume(here, 50)
  await until('the counts are exchanged', async () => (await leftOf(inProcess())) === 50)
  await server.flush()
  expect((await here.consume(key)).kind).toBe('decided')
  await until('counting starts afresh', async () => {
    await here.consume(key, { cost: 0 })
    return (await leftOf(here)) === 99
  })
})

test('an outage continues from the local count, or refuses with unavailable.decide "deny"', async () => {
  const fragile = await startRedis()
  const own = new Redis(fragile.url)
  own.on('error', () => {})
  const options = { on: own, consistency: seldom }
  const here = inProcess({ ...options, unavailable: { decide: 'local' } })
  const denying = inProcess({ ...options, unavailable: { decide: 'deny' }, name: 'denying' })
  await consume(here, 80)
  await consume(denying, 1)
  fragile.kill('SIGKILL')
  await until('Redis is away', async () => (await denying.consume(key)).kind === 'unavailable')
  await until('Redis is away', async () => (await here.consume(key, { cost: 0 })).kind === 'unavailable')
  expect(admitted(await consume(here, 50))).toBe(20)
  expect((await denying.consume(key)).allowed).toBe(false)
  for (const store of stores.splice(0)) await store.close()
  own.disconnect()
  await fragile.stop()
})

test.each([
  { what: 'that has not asked for a while', later: 0, left: 20 },
  { what: 'on which Redis has decided since', later: 5, left: 15 },
])('an outage continues from the count of a client $what', async ({ later, left }) => {
  const fragile = await startRedis()
  const own = new Redis(fragile.url)
  own.on('error', () => {})
  const here = inProcess({ on: own, consistency: often, unavailable: { decide: 'local' } })
  await consume(here, 80)
  // Many rounds, after one of which this process drops the count.
  await sleep(1000)
  for (let n = 0; n < later; n++) {
    await here.consume(key)
    await sleep(200)
  }
  fragile.kill('SIGKILL')
  await until('Redis is away', async () => (await here.consume(freshKey())).kind === 'unavailable')
  expect(admitted(await consume(here, 50))).toBe(left)
  await here.store.close()
  own.disconnect()
  await fragile.stop()
})

test('counts from before an outage reach Redis after it', async () => {
  const wire = await startProxy(server.port)
  const own = new Redis(wire.port, { retryStrategy: () => 20 })
  own.on('error', () => {})
  const here = inProcess({ on: own, consistency: { syncEvery: '200ms' } })
  await consume(here, 40)
  wire.cut()
  await until('Redis decides again', async () => (await here.consume(freshKey())).kind === 'decided')
  await until('the counts are exchanged', async () => (await leftOf(inProcess())) === 60)
  await here.store.close()
  own.disconnect()
  await wire.stop()
})

test('few scripts exchange the counts of many keys', async () => {
  const here = inProcess({ consistency: seldom })
  const keys = Array.from({ length: 3000 }, (_, n) => `${key}/${n}`)
  for (let times = 0; times < 3; times++) await Promise.all(keys.map((each) => here.consume(each)))
  const isExchanged = async () => {
    const left = await Promise.all([keys[0], keys[1500], keys[2999]].map((each) => leftOf(inProcess(), each)))
    return left.every((remaining) => remaining === 97)
  }
  const before = await calls()
  await here.store.close()
  expect((await calls()) - before).toBeLessThanOrEqual(3000 / 100)
  expect(await isExchanged()).toBe(true)
})

test('the memory store counts exactly with relaxed consistency', async () => {
  const limits = [slidingWindow<string>({ limit: 30, window: '1m' })]
  const memory = createLimiter({ name: 'relaxed', store: memoryStore(), limits, consistency: often })
  expect(admitted(await consume(memory, 40))).toBe(30)
  expect((await memory.consume(key)).limits[0]).toMatchObject({ limit: 30, capacity: 30 })
})

test('a plain limit with relaxed consistency is a sliding window', async () => {
  const store = redisStore(client, { timeout: 5000 })
  stores.push(store)
  const here = createLimiter({ name: 'plain', store, limit: 10, window: '1m', consistency: often })
  expect(here.limits[0]?.algorithm).toBe('slidingWindow')
  expect(admitted(await consume(here, 15))).toBe(10)
})
