// Takes long: begins first.
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, type Limiter, redisStore, SluiceError, slidingLog, type Verdict } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { freePort } from '../../scripts/lib/ports.js'
import { oneOfEach, singleClients } from '../support/clients.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { decided } from '../support/decided.js'
import { startProxy, type Wire } from '../support/proxy.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

const TIMEOUT_MS = 100
/** A decision without a deadline takes as long as Redis is away; on a busy machine, one with a deadline may take this. */
const HANGS_MS = 5000
/** Only a store that never recovers takes so long; `npm run chaos` measures the time to recover. */
const RECOVERY_MS = 20_000

const open = closedAfterEach()

async function server(port?: number): Promise<RedisServer> {
  const started = await startRedis(port === undefined ? {} : { port })
  open.push(() => started.stop())
  return started
}

async function proxyTo(target: RedisServer): Promise<Wire> {
  const proxy = await startProxy(target.port)
  open.push(() => proxy.stop())
  return proxy
}

/** A limiter on a client of this kind, whether or not a server listens on `port`. */
function limiterOn(kind: keyof typeof singleClients, port: number, timeout = TIMEOUT_MS): Limiter {
  const { client, close } = singleClients[kind](port)
  open.push(close)
  const store = redisStore(client, { timeout })
  open.push(() => store.close())
  return createLimiter({ name: 'faults', store, limits: [slidingLog({ limit: 1000, window: '1h' })] })
}

async function connectedLimiter(kind: keyof typeof singleClients, port: number, timeout?: number): Promise<Limiter> {
  const limiter = limiterOn(kind, port, timeout)
  await until('the store is connected', () => decided(limiter.consume('first')))
  return limiter
}

/** Units charged on each key, read without the faulty connection. */
async function charged(target: RedisServer, keys: readonly string[]): Promise<number[]> {
  const { client, ready, close } = singleClients['ioredis 6'](target.port)
  await ready
  const store = redisStore(client, { timeout: 5000 })
  try {
    const reader = createLimiter({ name: 'faults', store, limits: [slidingLog({ limit: 1000, window: '1h' })] })
    return (await Promise.all(keys.map((key) => decided(reader.peek(key))))).map(({ remaining }) => 1000 - remaining)
  } finally {
    await store.close()
    close()
  }
}

/** Expects a decision without the store, in time. */
async function expectOutage(pending: Promise<Verdict>): Promise<void> {
  const before = performance.now()
  const { kind, allowed } = await pending
  expect(performance.now() - before).toBeLessThan(HANGS_MS)
  expect({ kind, allowed }).toEqual({ kind: 'unavailable', allowed: true })
}

/** Expects a clear error in time, for an operation without a fallback. */
async function expectFailure(pending: Promise<unknown>): Promise<void> {
  const before = performance.now()
  const error = await pending.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(performance.now() - before).toBeLessThan(HANGS_MS)
  expect(error).toBeInstanceOf(SluiceError)
  expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
}

const names = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}-${n}`)

describe.each(oneOfEach(singleClients))('%s', (kind) => {
  test('a limiter that starts without Redis decides locally in time, and by Redis once it is up', async () => {
    const port = await freePort()
    const limiter = limiterOn(kind, port)
    await expectOutage(limiter.consume('k'))
    await Promise.all(names('k', 20).map((key) => expectOutage(limiter.consume(key))))
    await expectOutage(limiter.peek('k'))
    await expectFailure(limiter.reset('k'))
    await expectFailure(limiter.block('k', { for: '1h' }))

    const late = await server(port)
    await until('Redis decides again', () => decided(limiter.consume('recovered')), { withinMs: RECOVERY_MS })
    // Operations that failed during the outage are not repeated after it.
    expect(await charged(late, ['k', ...names('k', 20)])).toEqual(new Array(21).fill(0))
    expect((await limiter.peek('k')).block).toBeUndefined()
  })

  test('decisions are local and in time while Redis is killed, and by Redis once it is back', async () => {
    const redis = await server()
    const limiter = await connectedLimiter(kind, redis.port)
    redis.kill('SIGKILL')
    const keys = names('down', 10)
    for (const key of keys) {
      await expectOutage(limiter.consume(key))
    }
    await redis.restart()
    await until('Redis decides again', () => decided(limiter.consume('recovered')), { withinMs: RECOVERY_MS })
    await sleep(100)
    expect(await charged(redis, keys)).toEqual(new Array(10).fill(0))
  })

  test('every decision is made in time when Redis is killed under traffic', async () => {
    const redis = await server()
    const limiter = await connectedLimiter(kind, redis.port)
    const pending: Promise<{ tookMs: number; kind: string }>[] = []
    let decidedSoFar = 0
    const ask = () => {
      const before = performance.now()
      pending.push(
        limiter.consume(`traffic-${pending.length}`).then(({ kind }) => {
          if (kind === 'decided') decidedSoFar++
          return { tookMs: performance.now() - before, kind }
        }),
      )
    }
    for (let n = 0; n < 50; n++) ask()
    await until('Redis is under traffic', () => {
      ask()
      return decidedSoFar > 10
    })
    for (let n = 0; n < 20; n++) ask()
    redis.kill('SIGKILL')
    for (let n = 0; n < 50; n++) {
      ask()
      if (n % 5 === 0) await sleep(1)
    }
    const decisions = await Promise.all(pending)
    expect(decisions.at(-1)?.kind).toBe('unavailable')
    expect(Math.max(...decisions.map(({ tookMs }) => tookMs))).toBeLessThan(HANGS_MS)
  })

  test('no decision outlasts its deadline while Redis hangs, and none is charged twice after it resumes', async () => {
    const redis = await server()
    const limiter = await connectedLimiter(kind, redis.port)
    redis.kill('SIGSTOP')
    const keys = names('hung', 40)
    await Promise.all(keys.slice(0, 20).map((key) => expectOutage(limiter.consume(key))))
    for (const key of keys.slice(20, 30)) await expectOutage(limiter.consume(key))
    await Promise.all(keys.slice(30).map((key) => expectOutage(limiter.consume(key))))
    redis.kill('SIGCONT')
    await until('Redis decides again', () => decided(limiter.consume('recovered')), { withinMs: RECOVERY_MS })

    const units = await charged(redis, keys)
    expect(Math.max(...units)).toBeLessThanOrEqual(1)
    await sleep(300)
    expect(await charged(redis, keys)).toEqual(units)
  })

  test('a decision whose reply is lost is made locally in time, and is charged once', async () => {
    const redis = await server()
    const proxy = await proxyTo(redis)
    const limiter = await connectedLimiter(kind, proxy.port)
    proxy.toClient.hold()
    const outage = expectOutage(limiter.consume('lost'))
    await until('the script was executed', async () => (await redis.lifetimes()).size === 2)
    proxy.cut()
    await outage
    proxy.toClient.pass()
    await until('Redis decides again', () => decided(limiter.consume('recovered')), { withinMs: RECOVERY_MS })
    await sleep(300)
    expect(await charged(redis, ['lost'])).toEqual([1])
  })

  test('a decision whose request is lost is made locally in time, and is not charged', async () => {
    const redis = await server()
    const proxy = await proxyTo(redis)
    const limiter = await connectedLimiter(kind, proxy.port)
    proxy.toServer.hold()
    await expectOutage(limiter.consume('lost'))
    proxy.cut()
    proxy.toServer.pass()
    await until('Redis decides again', () => decided(limiter.consume('recovered')), { withinMs: RECOVERY_MS })
    await sleep(300)
    expect(await charged(redis, ['lost'])).toEqual([0])
  })

  test('a decision waits for a network that is slow within its deadline', async () => {
    const redis = await server()
    const proxy = await proxyTo(redis)
    const limiter = await connectedLimiter(kind, proxy.port)
    proxy.toClient.pass(40)
    expect(await limiter.consume('slow')).toMatchObject({ allowed: true, remaining: 999 })
  })

  test('replies that arrive after the deadline are not matched to later decisions', async () => {
    const redis = await server()
    const proxy = await proxyTo(redis)
    const limiter = await connectedLimiter(kind, proxy.port)
    proxy.toClient.hold()
    await Promise.all([1, 2, 3].map((cost) => expectOutage(limiter.consume('late', { cost }))))
    proxy.toClient.pass()
    await until('Redis decides again', () => decided(limiter.consume('recovered')), { withinMs: RECOVERY_MS })
    const costs = [10, 20, 30]
    const verdicts = await Promise.all(costs.map((cost) => limiter.consume(`after-${cost}`, { cost })))
    expect(verdicts.map(({ remaining }) => remaining)).toEqual([990, 980, 970])
    const [late] = (await charged(redis, ['late'])) as [number]
    expect(late).toBeLessThanOrEqual(6)
  })

  test('decisions continue over a new connection when the network silently drops everything', async () => {
    const redis = await server()
    const proxy = await proxyTo(redis)
    const limiter = await connectedLimiter(kind, proxy.port)
    // Like a firewall that forgot the connection: it stays open and silent, while new ones work.
    proxy.silence()
    await expectOutage(limiter.consume('silent'))
    await until('Redis decides again', () => decided(limiter.consume('recovered')), { withinMs: RECOVERY_MS })
    expect(await charged(redis, ['silent'])).toEqual([0])
  })

  test('under random faults, decisions of Redis are charged once, and local ones at most once', async () => {
    const redis = await server()
    const proxy = await proxyTo(redis)
    const limiter = await connectedLimiter(kind, proxy.port)
    const random = seeded(20_260_523)
    const admitted: string[] = []
    const failed: string[] = []
    const pending: Promise<void>[] = []
    for (let round = 0; round < 40; round++) {
      const faults = [
        () => proxy.toClient.hold(),
        () => proxy.toServer.hold(),
        () => proxy.toClient.pass(),
        () => proxy.toServer.pass(),
        () => proxy.toClient.pass(Math.floor(random() * 150)),
        () => proxy.cut(),
        () => redis.call('SCRIPT', 'FLUSH'),
      ]
      await faults[Math.floor(random() * faults.length)]?.()
      for (const key of names(`round-${round}`, 5)) {
        pending.push(limiter.consume(key).then(({ kind }) => void (kind === 'decided' ? admitted : failed).push(key)))
      }
      await sleep(10 + random() * 30)
    }
    await Promise.all(pending)
    proxy.toServer.pass()
    proxy.toClient.pass()
    await until('Redis decides again', () => decided(limiter.consume('recovered')), { withinMs: RECOVERY_MS })
    await sleep(200)
    expect(admitted.length + failed.length).toBe(200)
    expect(await charged(redis, admitted)).toEqual(new Array(admitted.length).fill(1))
    expect(Math.max(0, ...(await charged(redis, failed)))).toBeLessThanOrEqual(1)
  })

  test('decisions are exact when Redis loses its scripts at any moment', async () => {
    const redis = await server()
    const limiter = await connectedLimiter(kind, redis.port, 5000)
    for (let n = 1; n <= 5; n++) {
      await redis.call('SCRIPT', 'FLUSH')
      expect((await limiter.consume('k')).remaining).toBe(1000 - n)
    }
    await redis.call('SCRIPT', 'FLUSH')
    await limiter.block('k', { for: '1h' })
    const batches = Array.from({ length: 10 }, async (_, n) => {
      await sleep(n)
      if (n % 3 === 0) await redis.call('SCRIPT', 'FLUSH')
      return Promise.all(names('k', 100).map((key) => limiter.consume(key)))
    })
    await Promise.all(batches)
    expect(await charged(redis, names('k', 100))).toEqual(new Array(100).fill(10))
    expect((await limiter.consume('k')).reason).toBe('blocked')
  })

  test('every limit is as good as new after Redis loses all its data', async () => {
    const redis = await server()
    const limiter = await connectedLimiter(kind, redis.port, 5000)
    const verdict = await limiter.consume('k', { cost: 1000 })
    expect((await limiter.consume('k')).allowed).toBe(false)
    await redis.flush()
    expect(await limiter.consume('k', { cost: 1000 })).toMatchObject({ allowed: true, remaining: 0 })
    await redis.flush()
    await limiter.refund('k', verdict)
    expect(await redis.call('DBSIZE')).toBe(0)
  })

  test('a closed store completes pending decisions, ends its own connections, and leaves the client open', async () => {
    const redis = await server()
    const { client, ready, close } = singleClients[kind](redis.port)
    open.push(close)
    await ready
    const before = await redis.connections()
    const store = redisStore(client, { timeout: 5000 })
    const limiter = createLimiter({ name: 'closing', store, limit: 10, window: '1h' })
    await limiter.consume('k')
    expect(await redis.connections()).toBeGreaterThan(before)

    const inFlight = [limiter.consume('k'), limiter.consume('k')]
    await store.close()
    expect((await Promise.all(inFlight)).map(({ remaining }) => remaining)).toEqual([8, 7])
    await until('the connections of the store are closed', async () => (await redis.connections()) === before)
    await expectOutage(limiter.consume('k'))
    await store.close()
    expect(await (client as { ping(): Promise<unknown> }).ping()).toBe('PONG')
    expect(await redis.connections()).toBe(before)
  })

  test('a store closes in time under further requests, and still sends refunds', async () => {
    const redis = await server()
    const proxy = await proxyTo(redis)
    const { client, close } = singleClients[kind](proxy.port)
    open.push(close)
    const store = redisStore(client, { timeout: 5000 })
    const limiter = createLimiter({ name: 'faults', store, limits: [slidingLog({ limit: 1000, window: '1h' })] })
    const admitted = await decided(limiter.consume('refunded'))
    // Slow enough that some decision is always pending.
    proxy.toClient.pass(20)
    const inFlight = limiter.consume('under way')
    let isClosed = false
    const closing = store.close().then(() => {
      isClosed = true
    })
    const refunded = limiter.refund('refunded', admitted)
    const pending = names('after', 100)
    for (const key of pending) {
      expect((await limiter.consume(key)).kind).toBe('unavailable')
      if (isClosed) break
      await sleep(3)
    }
    expect(isClosed).toBe(true)
    await closing
    expect((await inFlight).kind).toBe('decided')
    expect(await refunded).toBe(true)
    expect(await charged(redis, ['refunded', 'under way', 'after-0'])).toEqual([0, 1, 0])
  })

  test('a client that its user closes also ends the connections of the store', async () => {
    const redis = await server()
    const { client, ready, close } = singleClients[kind](redis.port)
    await ready
    const store = redisStore(client)
    const limiter = createLimiter({ name: 'closing', store, limit: 10, window: '1h' })
    await until('the store is connected', () => decided(limiter.consume('k')))
    close()
    await until('no client is connected', async () => (await redis.connections()) === 0)
    await expectOutage(limiter.consume('k'))
    await store.close()
  })

  test('a store that closes before it ever connected opens no connection later', async () => {
    const port = await freePort()
    const { client, close } = singleClients[kind](port)
    open.push(close)
    const store = redisStore(client, { timeout: TIMEOUT_MS })
    const limiter = createLimiter({ name: 'closing', store, limit: 10, window: '1h' })
    const pending = expectOutage(limiter.consume('k'))
    await store.close()
    await pending
    const late = await server(port)
    await sleep(700)
    // The client of the user reconnects; the store does not.
    expect(await late.connections()).toBeLessThanOrEqual(1)
  })
})

/** Mulberry32: the same numbers in every run. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
