import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, type RedisStore, redisStore, storeList } from '@sluice/core'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { singleClients } from '../support/clients.js'
import { byEffort } from '../support/effort.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

const RUNS = Number(process.env.SLUICE_RUNS ?? 1)

let server: RedisServer
let warned: string[]
const leaving: (() => Promise<void>)[] = []
beforeEach(async () => {
  server = await startRedis()
  warned = []
  // The warnings about killed servers are expected.
  vi.spyOn(process, 'emitWarning').mockImplementation((message) => void warned.push(String(message)))
})
afterEach(async () => {
  vi.restoreAllMocks()
  for (const leave of leaving.splice(0)) await leave()
  await server.stop()
})

/** A process that has just started, without waiting for its connection. */
function newcomer(connectTimeout = 20_000) {
  const { client, close } = singleClients['ioredis 6'](server.port)
  const store = redisStore(client, { timeout: 2000, connectTimeout, prefix: 'lasting-lists:' })
  leaving.push(async () => {
    await store.close()
    close()
  })
  return createLimiter({ name: 'api', store, limit: 1000, window: '1m', deny: storeList('abusers') })
}

/** A process that shares the server, with its own client and store, and a limiter that denies the entries of a list. */
async function member() {
  const { client, ready, close } = singleClients['ioredis 6'](server.port)
  await ready
  const store: RedisStore = redisStore(client, { timeout: 2000, denyCache: false, prefix: 'lasting-lists:' })
  const abusers = storeList('abusers')
  const limiter = createLimiter({ name: 'api', store, limit: 1000, window: '1m', deny: abusers })
  const leave = async () => {
    await store.close()
    close()
  }
  leaving.push(leave)
  await abusers.ready()
  const isDenied = async (key: string) => (await limiter.consume(key)).reason === 'denied'
  return { list: store.list('abusers'), limiter, isDenied, leave }
}

test('a change to a list holds at once in its process, and soon in others', async () => {
  const [here, there] = [await member(), await member()]
  await here.list.add({ key: 'eve' }, { reason: 'fraud' })
  expect(await here.isDenied('eve')).toBe(true)
  await until('the other process knows the list', () => there.isDenied('eve'))
  // A process that starts later has every entry once its list is ready.
  const later = await member()
  expect(await later.isDenied('eve')).toBe(true)
  await there.list.remove({ key: 'eve' })
  expect(await there.isDenied('eve')).toBe(false)
  await until('the first process knows the removal', async () => !(await here.isDenied('eve')))
})

describe.each(Array.from({ length: RUNS }, (_, run) => run + 1))('run %i', () => {
  test('a list holds while Redis is killed, and is restored when Redis restarts empty', async () => {
    const [here, there] = [await member(), await member()]
    await here.list.add({ key: 'eve' }, { reason: 'fraud' })
    await here.list.add({ key: 'mallory' })
    await here.list.remove({ key: 'mallory' })
    await until('the other process knows the list', () => there.list.size === 1)
    server.kill('SIGKILL')
    expect(await here.isDenied('eve')).toBe(true)
    expect(await there.isDenied('eve')).toBe(true)
    await expect(here.list.add({ key: 'oscar' })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await server.restart()
    await until(
      'the list is restored in Redis',
      async () => (await here.list.list().catch(() => undefined))?.entries.length === 1,
    )
    expect(await here.list.get({ key: 'eve' })).toMatchObject({ value: 'eve', reason: 'fraud' })
    expect(await there.isDenied('eve')).toBe(true)
    expect(await there.isDenied('mallory')).toBe(false)
    expect(warned.filter((message) => message.includes('an entry of a list'))).not.toEqual([])
  })

  test('a flush ends no list entry, and a removed entry stays removed, whichever process knew of it', async () => {
    const [here, there] = [await member(), await member()]
    await here.list.add({ key: 'eve' })
    await here.list.add({ key: 'mallory' })
    await until('the other process knows the list', () => there.list.size === 2)
    await here.leave()
    leaving.shift()
    await server.flush()
    await there.list.remove({ key: 'mallory' })
    const later = await member()
    await until('the new process knows the list', () => later.isDenied('eve'))
    expect(await later.isDenied('mallory')).toBe(false)
    expect(await there.isDenied('eve')).toBe(true)
  })

  test('the removal of a list entry is restored when Redis loses it before others read it', async () => {
    const [here, there] = [await member(), await member()]
    await here.list.add({ key: 'eve' })
    await until('the other process knows the list', () => there.list.size === 1)
    await there.list.remove({ key: 'eve' })
    await server.flush()
    await sleep(2500)
    expect((await here.list.list()).entries).toEqual([])
    expect(await here.isDenied('eve')).toBe(false)
    expect(await there.isDenied('eve')).toBe(false)
  })

  test('eviction of keys under a flood of made-up identities ends no list entry', async () => {
    const here = await member()
    await here.list.add({ key: 'eve' })
    const used = Number((await server.fields('INFO', 'memory')).used_memory)
    await server.call('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    await server.call('CONFIG', 'SET', 'maxmemory', used + 300_000)
    for (let n = 0; n < 40; n++) {
      await Promise.all(Array.from({ length: 200 }, (_, i) => here.limiter.consume(`made-up ${n}.${i}`)))
      expect(await here.isDenied('eve')).toBe(true)
    }
    expect(Number((await server.fields('INFO', 'stats')).evicted_keys)).toBeGreaterThan(1000)
    await server.call('CONFIG', 'SET', 'maxmemory', 0)
    // The key that only changes and pages read is evicted first.
    const keys = (await server.call('KEYS', '*:changes')) as string[]
    for (const key of keys) await server.call('DEL', key)
    await until('Redis has the entry again', async () => (await here.list.list()).entries.length === 1)
  })
})

test('a process applies every entry of a long list from its first request on', async () => {
  const entries = byEffort({ quick: 1000, usual: 3000, full: 100_000 })
  const here = await member()
  const keys = Array.from({ length: entries }, (_, n) => `abuser ${n}`)
  for (let n = 0; n < entries; n += 500) {
    await Promise.all(keys.slice(n, n + 500).map((key) => here.list.add({ key })))
  }
  const [first, last] = [keys[0], keys.at(-1)] as [string, string]
  const limiter = newcomer()
  const refused = (error: { refusal?: { reason?: string } }) => error.refusal
  const verdicts = await Promise.all([
    limiter.consume(first),
    limiter.peek(last),
    limiter.acquire(last).catch(refused),
    ...keys.filter((_, n) => n % 100 === 0).map((key) => limiter.consume(key)),
  ])
  expect(new Set(verdicts.map((verdict) => verdict?.reason))).toEqual(new Set(['denied']))
  expect((await limiter.consume('friend')).allowed).toBe(true)
})

test('a process that starts while Redis is away admits without the list, and applies it once Redis is up', async () => {
  const here = await member()
  await here.list.add({ key: 'eve' })
  server.kill('SIGKILL')
  const limiter = newcomer(200)
  expect(await limiter.consume('eve')).toMatchObject({ allowed: true, kind: 'unavailable' })
  await server.restart()
  await until('the process knows the list', async () => (await limiter.consume('eve')).reason === 'denied')
})
