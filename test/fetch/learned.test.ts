import { redisStore } from '@sluice/core'
import { type KeyedScripts, keyedScriptsOf } from '@sluice/core/internal'
import { Redis } from 'ioredis'
import { beforeAll, expect, test } from 'vitest'
import { SharedQuota } from '../../packages/fetch/src/learned/shared-quota.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { differenceIn } from './quota-steps.js'

const SEED = Number(process.env.SLUICE_SEED ?? 1)
const RUNS = Number(process.env.SLUICE_RUNS ?? 10)

let redis: RedisServer
let client: Redis
const clock = { now: 0 }
let scripts: KeyedScripts
beforeAll(async () => {
  redis = await startRedis()
  client = new Redis(redis.port)
  const store = redisStore(client, { clock: () => clock.now, timeout: 10_000 })
  scripts = keyedScriptsOf(store) as KeyedScripts
  return async () => {
    await store.close()
    client.disconnect()
    await redis.stop()
  }
})

async function read(end: string) {
  const [key = ''] = await client.keys(`*${end}`)
  return { value: await client.get(key), lifeMs: await client.pttl(key) }
}

test.each(Array.from({ length: RUNS }, (_, run) => SEED + run))(
  'what requests and answers make of a quota is the same in a process and on Redis (seed %i)',
  async (seed) => {
    expect(await differenceIn({ scripts, clock, read }, seed, 300)).toBeUndefined()
  },
)

test.each(['1', 'q1', 'q1 1 2 3', 'q1 1 0 0 0 0 0 9'])(
  'a value of another program is no quota, and the next request replaces it (%s)',
  async (value) => {
    const quota = new SharedQuota(scripts, 'foreign', 'key=k')
    await quota.take(false)
    const [key = ''] = await client.keys('*:foreign:quota')
    await client.set(key, value)
    expect(await quota.take(false)).toMatchObject({ isFirst: true, takenByAll: 1 })
  },
)
