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

/** Far away, so that what is told at the close is told then. */
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

/** A limiter of a process of its own. */
function inProcess({ on = client, limits = HOUR, consistency = often, name = 'relaxed', ...rest }: Options = {}) {
  const store = redisStore(on, { timeout: 5000 })
  stores.push(store)
  const limiter = createLimiter({ name, store, limits, consistency, ...(rest as object) })
  return Object.assign(limiter, { store: store as RedisStore })
}

/** Consumes a unit at a time until decisions are made here, and returns how many were admitted. */
async function untilCountedHere(limiter: Limiter): Promise<number> {
  let units = 0
  await until(
    'it is counted here',
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

/** How many scripts Redis has run. */
async function calls(): Promise<number> {
  const stats = String(await server.call('INFO', 'commandstats')).matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)
  return [...stats].reduce((sum, [, count]) => sum + Number(count), 0)
}

async function callsDuring(run: () => Promise<unknown>): Promise<number> {
  const before = await calls()
  await run()
  return (await calls()) - before
}

test('the first two decisions on a key are asked of Redis, and those after them are not', async () => {
  const here = inProcess({ consistency: seldom })
  expect(await callsDuring(() => consume(here, 1))).toBe(1)
  // The decision, and what fetches the count.
  expect(await callsDuring(() => consume(here, 1))).toBe(2)
  expect(await callsDuring(() => consume(here, 50))).toBe(0)
  expect(await leftOf(here)).toBe(48)
})

test('keys that are asked for once cost Redis one decision each, and nothing later', async () => {
  const here = inProcess()
  const before = await calls()
  for (let n = 0; n < 30; n++) await consume(here, 1, `${key}/${n}`)
  // Some rounds long enough for exchanges, had there been anything to tell.
  await new Promise((resolve) => setTimeout(resolve, 100))
  await here.store.close()
  expect((await calls()) - before).toBe(30)
})

test('decisions of one turn on a new key are all asked of Redis, and counted once', async () => {
  const here = inProcess({ consistency: seldom })
  const together = () => Promise.all(Array.from({ length: 30 }, () => here.consume(key)))
  for (let times = 1; times <= 3; times++) {
    const [least] = (await together()).map(({ remaining }) => remaining).sort((a, b) => a - b)
    expect(least).toBe(100 - 30 * times)
  }
  await here.store.close()
  expect(await leftOf(inProcess())).toBe(10)
})

test('every process knows what the others have admitted, once they have told it', async () => {
  const [here, elsewhere] = [inProcess(), inProcess()]
  await consume(here, 30)
  await consume(elsewhere, 20)
  for (const limiter of [here, elsewhere]) {
    await until('it knows', async () => {
      // Asked for, so that it is still counted here.
      await limiter.consume(key, { cost: 0 })
      return (await leftOf(limiter)) === 50
    })
  }
})

test('no decision waits for an exchange, nor for Redis to be there', async () => {
  const wire = await startProxy(server.port)
  const own = new Redis(wire.port)
  const here = inProcess({ on: own, consistency: { syncEvery: '100ms' } })
  await untilCountedHere(here)
  wire.toServer.hold()
  // Some exchanges are under way by then.
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

test('one process alone is admitted the limit and no more, however many ask at once', async () => {
  const here = inProcess()
  const verdicts = await Promise.all(Array.from({ length: 150 }, () => here.consume(key)))
  expect(admitted(verdicts)).toBe(100)
  expect(admitted(await consume(here, 50))).toBe(0)
})

test('a refusal says to the ms when there is room', async () => {
  const here = inProcess({ limits: [fixedWindow({ limit: 10, window: '2s', anchor: 'first-request' })] })
  const [last] = (await consume(here, 11)).slice(-1)
  expect(last?.allowed).toBe(false)
  await new Promise((resolve) => setTimeout(resolve, last?.retryAfterMs))
  expect((await here.consume(key)).allowed).toBe(true)
})

test('what was counted is in Redis when the store is closed', async () => {
  const limits = [...HOUR, slidingWindow<string>({ limit: 100, window: '1h' })]
  const here = inProcess({ limits, consistency: seldom })
  await consume(here, 40)
  await here.store.close()
  const { limits: left } = await inProcess({ limits }).peek(key)
  expect(left.map(({ remaining }) => remaining)).toEqual([60, 60])
})

test('charges that are made while an exchange is under way are told as well', async () => {
  const wire = await startProxy(server.port)
  const own = new Redis(wire.port)
  const here = inProcess({ on: own })
  await consume(here, 10)
  wire.toClient.hold()
  await until('an exchange is under way', async () => (await leftOf(inProcess())) === 90)
  await consume(here, 10)
  wire.toClient.pass()
  await here.store.close()
  expect(await leftOf(inProcess())).toBe(80)
  own.disconnect()
  await wire.stop()
})

test('a key that is not asked for any more is asked of Redis again', async () => {
  const here = inProcess()
  await consume(here, 2)
  await until('it is dropped', async () => {
    await new Promise((resolve) => setTimeout(resolve, 60))
    return (await callsDuring(() => here.peek(key))) > 0
  })
})

test('costs of any size are met exactly by one process', async () => {
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

test('several limits are decided together: where one refuses, none is charged', async () => {
  const ofUser = keyed('part', (user: string) => user.split('/')[1])
  const limits: Limit<string>[] = [
    fixedWindow({ limit: 10, window: '1h' }),
    slidingWindow({ limit: 15, window: '1h', key: ofUser }),
  ]
  const here = inProcess({ limits })
  const ask = (who: string, times: number) => consume(here, times, `${who}/${key}`)
  expect(admitted(await ask('a', 12))).toBe(10)
  const [, ...more] = await ask('b', 12)
  expect(admitted(more)).toBe(4)
  expect(more.at(-1)?.limits.map(({ remaining }) => remaining)).toEqual([5, 0])
})

test('a first decision on one identity knows what was counted here on the other', async () => {
  const everyone = keyed('all', () => 'everyone')
  const limits: Limit<string>[] = [
    fixedWindow({ limit: 10, window: '1h' }),
    fixedWindow({ limit: 30, window: '1h', key: everyone }),
  ]
  const here = inProcess({ limits, consistency: seldom, name: `first-${key}` })
  let total = 0
  for (let n = 0; n < 20; n++) total += admitted(await consume(here, 3, `${key}/${n}`))
  expect(total).toBe(30)
})

test('a refund counts here at once, and elsewhere once it is told', async () => {
  for (const limits of [HOUR, [slidingWindow<string>({ limit: 100, window: '1h' })]]) {
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

test('a refund of what is not counted here any more reaches Redis', async () => {
  const here = inProcess()
  const [, second] = (await consume(here, 2)) as [Verdict, Verdict]
  await until('it is dropped', async () => {
    await new Promise((resolve) => setTimeout(resolve, 60))
    return (await callsDuring(() => here.peek(key))) > 0
  })
  expect(await here.refund(key, second)).toBe(true)
  expect(await leftOf(inProcess())).toBe(99)
})

test('a refund of a decision that was asked of Redis alone reaches it', async () => {
  const here = inProcess()
  const [only] = (await consume(here, 1)) as [Verdict]
  expect(await here.refund(key, only)).toBe(true)
  expect(await leftOf(inProcess())).toBe(100)
})

test('a reset forgets what is counted here, told or not', async () => {
  const here = inProcess({ consistency: seldom })
  const [, last] = (await consume(here, 30)) as [Verdict, Verdict]
  await here.reset(key)
  expect(await leftOf(here)).toBe(100)
  await here.refund(key, last)
  expect(admitted(await consume(here, 120))).toBe(100)
  await here.store.close()
  expect(await leftOf(inProcess())).toBe(0)
})

test('an identity that is erased is not told of again', async () => {
  const here = inProcess({ consistency: seldom })
  await consume(here, 30)
  await here.store.forget({ key })
  await here.store.close()
  expect(await leftOf(inProcess())).toBe(100)
})

test('limiters of one name and one store count together', async () => {
  const here = inProcess({ consistency: seldom })
  const again = createLimiter({ name: 'relaxed', store: here.store, limits: HOUR, consistency: seldom })
  await Promise.all([consume(here, 30), consume(again, 30)])
  expect(await leftOf(here)).toBe(40)
})

test('a block holds here at once, and elsewhere with the next exchange', async () => {
  const [here, elsewhere] = [inProcess(), inProcess()]
  await Promise.all([consume(here, 5), consume(elsewhere, 5)])
  await here.block(key, { for: '1h', reason: 'scraping' })
  expect((await here.consume(key)).block?.reason).toBe('scraping')
  await until('it holds', async () => (await elsewhere.consume(key)).reason === 'blocked')
  await here.unblock(key)
  expect((await here.consume(key)).allowed).toBe(true)
})

test('refusals are strikes: the ban begins with the last one, here and elsewhere', async () => {
  const ban = { by: 'key', after: 3, within: '1h', for: ['1h'] }
  const limits = [fixedWindow<string>({ limit: 5, window: '1h' })]
  const [here, elsewhere] = [inProcess({ limits, ban, name: 'bans' }), inProcess({ limits, ban, name: 'bans' })]
  await consume(elsewhere, 1)
  const verdicts = await consume(here, 8)
  const reasons = verdicts.map(({ allowed, reason }) => (allowed ? 'allowed' : reason))
  expect(reasons.slice(-4)).toEqual(['limited', 'limited', 'banned', 'banned'])
  await until('it holds', async () => (await elsewhere.consume(key)).reason === 'banned')
})

test('refusals that are charged keep a client out for as long as it goes on', async () => {
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
  // 25 are counted: refunding some of them makes no room.
  expect((await exact.peek(key)).allowed).toBe(false)
})

test('refusals that are charged are charged once, where only some of the limits are counted here', async () => {
  const everyone = keyed('all', () => 'everyone')
  const limits = [
    fixedWindow<string>({ limit: 5, window: '1h', key: everyone }),
    fixedWindow<string>({ limit: 50, window: '1h' }),
  ]
  const charging = () => inProcess({ limits, consistency: seldom, name: `partly-${key}`, onDeny: 'charge' })
  const here = charging()
  const [first, second] = (await consume(here, 2, `${key}/0`)) as [Verdict, Verdict]
  for (const n of [1, 2, 3]) expect((await here.consume(`${key}/${n}`)).allowed).toBe(true)
  expect((await here.consume(`${key}/4`)).allowed).toBe(false)
  for (const verdict of [first, second]) await here.refund(`${key}/0`, verdict)
  await here.store.close()
  // Of six units, the refusal's among them, two are given back.
  const { limits: left } = await charging().peek(`${key}/4`)
  expect(left.map(({ remaining }) => remaining)).toEqual([1, 49])
})

test('a Redis that lost its data counts on from what it is told, without failing a decision', async () => {
  const here = inProcess()
  await consume(here, 50)
  await until('it is told', async () => (await leftOf(inProcess())) === 50)
  await server.flush()
  expect((await here.consume(key)).kind).toBe('decided')
  await until('it goes on from there', async () => {
    await here.consume(key, { cost: 0 })
    return (await leftOf(here)) === 99
  })
})

test('in an outage counting goes on from what was counted here, by the rules of the limiter', async () => {
  const fragile = await startRedis()
  const own = new Redis(fragile.url)
  own.on('error', () => {})
  const options = { on: own, consistency: often }
  const here = inProcess({ ...options, unavailable: { decide: 'local' } })
  const denying = inProcess({ ...options, unavailable: { decide: 'deny' }, name: 'denying' })
  await consume(here, 80)
  await consume(denying, 1)
  fragile.kill('SIGKILL')
  await until('it is away', async () => (await denying.consume(key)).kind === 'unavailable')
  await until('it is away', async () => (await here.consume(key, { cost: 0 })).kind === 'unavailable')
  expect(admitted(await consume(here, 50))).toBe(20)
  expect((await denying.consume(key)).allowed).toBe(false)
  for (const store of stores.splice(0)) await store.close()
  own.disconnect()
  await fragile.stop()
})

test('after an outage what was counted before is told', async () => {
  const wire = await startProxy(server.port)
  const own = new Redis(wire.port, { retryStrategy: () => 20 })
  own.on('error', () => {})
  const here = inProcess({ on: own, consistency: { syncEvery: '200ms' } })
  await consume(here, 40)
  wire.cut()
  await until('it is there again', async () => (await here.consume(freshKey())).kind === 'decided')
  await until('it is told', async () => (await leftOf(inProcess())) === 60)
  await here.store.close()
  own.disconnect()
  await wire.stop()
})

test('many keys are exchanged in few scripts', async () => {
  const here = inProcess({ consistency: seldom })
  const keys = Array.from({ length: 3000 }, (_, n) => `${key}/${n}`)
  for (let times = 0; times < 3; times++) await Promise.all(keys.map((each) => here.consume(each)))
  const told = async () => {
    const left = await Promise.all([keys[0], keys[1500], keys[2999]].map((each) => leftOf(inProcess(), each)))
    return left.every((remaining) => remaining === 97)
  }
  const before = await calls()
  await here.store.close()
  expect((await calls()) - before).toBeLessThanOrEqual(3000 / 100)
  expect(await told()).toBe(true)
})

test('memory counts exactly, and says the same', async () => {
  const limits = [slidingWindow<string>({ limit: 30, window: '1m' })]
  const memory = createLimiter({ name: 'relaxed', store: memoryStore(), limits, consistency: often })
  expect(admitted(await consume(memory, 40))).toBe(30)
  expect((await memory.consume(key)).limits[0]).toMatchObject({ limit: 30, capacity: 30 })
})

test('a plain limit is a strict window then', async () => {
  const store = redisStore(client, { timeout: 5000 })
  stores.push(store)
  const here = createLimiter({ name: 'plain', store, limit: 10, window: '1m', consistency: often })
  expect(here.limits[0]?.algorithm).toBe('slidingWindow')
  expect(admitted(await consume(here, 15))).toBe(10)
})
