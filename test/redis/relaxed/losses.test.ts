import {
  type ConsistencyOptions,
  createLimiter,
  fixedWindow,
  type Limit,
  type RedisStore,
  redisStore,
  slidingWindow,
} from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { freshKey } from '../../contract/store-under-test.js'
import { closedAfterEach } from '../../support/closed-after-each.js'
import { HOST, startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'

const server = await startRedis()
const open = closedAfterEach()
afterAll(() => server.stop())

let key: string
beforeEach(() => {
  key = freshKey()
})

const seldom = { syncEvery: '1m' } as const
const often = { syncEvery: '20ms' } as const
const HOUR: readonly Limit<string>[] = [fixedWindow({ limit: 100, window: '1h', anchor: 'first-request' })]

/** A limiter on a separate store, as in another process. */
function inProcess(consistency: ConsistencyOptions, { port } = server, limits = HOUR) {
  const client = new Redis(port, { retryStrategy: () => 20 })
  client.on('error', () => {})
  const store: RedisStore = redisStore(client, { timeout: 5000 })
  open.push(
    () => client.disconnect(),
    () => store.close(),
  )
  const limiter = createLimiter({ name: 'losses', store, limits, consistency })
  const consume = async (times: number, on = key) => {
    let admitted = 0
    for (let n = 0; n < times; n++) if ((await limiter.consume(on)).allowed) admitted++
    return admitted
  }
  return { limiter, store, consume, left: async (on = key) => (await limiter.peek(on)).remaining }
}

/** The number of scripts that Redis has executed. */
async function calls(): Promise<number> {
  const stats = String(await server.call('INFO', 'commandstats')).matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)
  return [...stats].reduce((sum, [, count]) => sum + Number(count), 0)
}

test('relaxed counts on the replica remain after a failover, and processes send their pending counts to it', async () => {
  const atOnce = 'repl-diskless-sync-delay 0'
  const primary = await startRedis({ settings: [atOnce] })
  const replica = await startRedis({ settings: [`replicaof ${HOST} ${primary.port}`, atOnce] })
  open.push(() => replica.stop())
  const isLinked = async (of: typeof replica) => (await of.fields('INFO', 'replication')).master_link_status === 'up'
  await until('the replica is in sync', () => isLinked(replica))
  const earlier = inProcess(seldom, primary)
  await earlier.consume(30)
  await earlier.store.close()
  const here = inProcess(seldom, primary)
  await here.consume(12)
  expect(await primary.call('WAIT', 1, 10_000)).toBe(1)
  primary.kill('SIGKILL')
  await primary.stop()
  await replica.call('REPLICAOF', 'NO', 'ONE')
  // A server with the data of the replica takes the address of the primary.
  const promoted = await startRedis({ port: primary.port, settings: [`replicaof ${HOST} ${replica.port}`] })
  open.push(() => promoted.stop())
  await until('the new server is in sync', () => isLinked(promoted))
  await promoted.call('REPLICAOF', 'NO', 'ONE')
  await until('Redis decides', async () => (await here.limiter.consume(freshKey())).kind === 'decided')
  await here.store.close()
  expect(await inProcess(seldom, primary).left()).toBe(58)
})

test('an evicted key loses its relaxed count in all processes, and later charges count', async () => {
  const [here, elsewhere] = [inProcess(often), inProcess(often)]
  await here.consume(40)
  await elsewhere.consume(20)
  await until('the counts are exchanged', async () => (await inProcess(often).left()) === 40)
  const [found] = [...(await server.lifetimes()).keys()].filter((each) => each.includes(key))
  await server.call('UNLINK', found as string)
  for (const process of [here, elsewhere]) {
    await until('the process notices the loss', async () => {
      await process.limiter.consume(key, { cost: 0 })
      return (await process.left()) === 100
    })
  }
  expect(await here.consume(120)).toBe(100)
})

test('Redis decides exactly on keys for which a process has no room, and other keys remain local', async () => {
  // About eight kilobytes each, of the 32 megabytes that a process may use.
  const wide = [slidingWindow<string>({ limit: 5, window: '1h', segments: 1000 })]
  const here = inProcess(seldom, server, wide)
  const keys = Array.from({ length: 3800 }, (_, n) => `${key}/${n}`)
  for (let times = 0; times < 2; times++) await Promise.all(keys.map((each) => here.limiter.consume(each)))
  const callsOn = async (on: string) => {
    const before = await calls()
    expect(await here.consume(5, on)).toBe(3)
    return (await calls()) - before
  }
  expect(await callsOn(keys[0] as string)).toBe(0)
  expect(await callsOn(keys[3799] as string)).toBeGreaterThanOrEqual(5)
})
