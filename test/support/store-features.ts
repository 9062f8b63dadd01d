import {
  concurrency,
  createLimiter,
  gcra,
  type Limit,
  liveFigures,
  type RedisClient,
  type RedisStore,
  redisStore,
  slidingLog,
} from '@sluice/core'
import { algorithms } from './algorithms.js'
import { decided } from './decided.js'
import { until } from './until.js'

const HOUR_MS = 3_600_000

/**
 * Uses every feature of a store on these keys, and fails at the first that is not done in Redis. `outage` makes Redis
 * refuse writes while the given function runs.
 */
export async function useEveryFeature(
  client: RedisClient,
  keys: readonly string[],
  server: { flushScripts(): Promise<unknown>; outage(during: () => Promise<unknown>): Promise<unknown> },
): Promise<void> {
  const store = redisStore(client, { timeout: 2000, denyCache: false, report: liveFigures() })
  try {
    for (const key of keys) {
      for (const [name, algorithm] of Object.entries(algorithms))
        await useAlgorithm(store, name, algorithm(4, HOUR_MS), key)
      await usePermits(store, key)
      await useBlocks(store, key)
      await useBans(store, key)
      await useLeases(store, key)
      await useKeptCharges(store, key)
      await useLists(store, key)
    }
    const limiter = createLimiter({ name: 'scripts', store, limit: 100, window: '1m' })
    for (const key of keys) await decided(limiter.consume(key))
    await server.flushScripts()
    for (const key of keys) await decided(limiter.consume(key))
    await server.outage(() =>
      until('an outage is noticed', async () => {
        await limiter.consume(keys[0] as string)
        return store.state === 'unavailable'
      }),
    )
    await until('the outage is over', () => decided(limiter.consume(keys[0] as string)), { withinMs: 2000 })
  } finally {
    await store.close()
  }
}

async function useAlgorithm(store: RedisStore, name: string, limit: Limit<string>, key: string): Promise<void> {
  const limiter = createLimiter({ name: name.replaceAll(' ', '-'), store, limits: [limit] })
  await decided(limiter.peek(key))
  const verdict = await decided(limiter.consume(key))
  await decided(limiter.consume(key))
  if (!(await limiter.refund(key, verdict)) && name !== 'concurrency')
    throw new Error(`${name}: the refund is without effect`)
  await decided(limiter.consume(key, { cost: 4 }))
  await limiter.reset(key)
  if ((await decided(limiter.peek(key))).remaining !== 4) throw new Error(`${name}: the reset is without effect`)
}

async function usePermits(store: RedisStore, key: string): Promise<void> {
  const limiter = createLimiter({ name: 'permits', store, limits: [concurrency({ limit: 4, ttl: 80 })] })
  await decided(limiter.consume(key))
  await new Promise((resolve) => setTimeout(resolve, 50))
  const held = await decided(limiter.consume(key))
  await limiter.renew(held)
  await new Promise((resolve) => setTimeout(resolve, 50))
  // The first permit has lapsed and is removed.
  for (const permits of [2, 3]) await decided(limiter.consume(key, { cost: { 'concurrent-requests': permits } }))
  await limiter.release(held)
  await limiter.reset(key)
}

async function useBlocks(store: RedisStore, key: string): Promise<void> {
  for (const limit of [slidingLog({ limit: 4, window: '1h' }), concurrency({ limit: 4 })]) {
    const limiter = createLimiter({ name: 'blocks', store, limits: [limit] })
    await limiter.block(key, { for: '1h', reason: 'a test' })
    if ((await decided(limiter.consume(key))).reason !== 'blocked') throw new Error('the block does not hold')
    if ((await store.blocks.get({ key }, { policy: 'blocks' }))?.reason !== 'a test')
      throw new Error('the block is not listed')
    await limiter.unblock(key)
    if (!(await decided(limiter.consume(key))).allowed) throw new Error('the block stays')
  }
  await store.blocks.add({ key }, { for: '1h' })
  if ((await store.blocks.list()).entries.length === 0) throw new Error('nothing is listed')
  await store.blocks.removeAll()
}

async function useBans(store: RedisStore, key: string): Promise<void> {
  const ban = { after: 2, within: '1h', for: ['1h'] } as const
  const limiter = createLimiter({ name: 'bans', store, limits: [slidingLog({ limit: 1, window: '1h' })], ban })
  for (let n = 0; n < 2; n++) await decided(limiter.consume(key))
  if ((await decided(limiter.consume(key))).reason !== 'banned') throw new Error('the key is not banned')
  await limiter.unblock(key)
  await limiter.strike(key)
  await limiter.reset(key)
  if (await limiter.strike(key)) throw new Error('the reset leaves strikes')
  if (!(await limiter.strike(key))) throw new Error('a strike starts no ban')
  await limiter.unblock(key)
}

async function useLeases(store: RedisStore, key: string): Promise<void> {
  const limits = [gcra({ limit: 100, window: '1m', lease: { size: 10, ttl: '10s' } })]
  const limiter = createLimiter({ name: 'leases', store, limits })
  for (let n = 0; n < 12; n++) await decided(limiter.consume(key))
}

async function useKeptCharges(store: RedisStore, key: string): Promise<void> {
  const limits = [slidingLog({ limit: 4, window: '1h' }), concurrency({ limit: 4 })]
  const limiter = createLimiter({ name: 'kept', store, limits, charges: { keep: '1m' } })
  for (const end of [
    (id: string) => limiter.settle(id, { requests: 0 }),
    (id: string) => limiter.renew(id),
    (id: string) => limiter.release(id),
    (id: string) => limiter.refund(id),
  ]) {
    const { id } = await decided(limiter.consume(key))
    if ((await end(id as string)) !== 'done') throw new Error('a kept charge is not changed')
  }
}

async function useLists(store: RedisStore, key: string): Promise<void> {
  const list = store.list('features')
  await list.add({ key })
  if (!(await list.get({ key }))) throw new Error('the entry is not kept')
  await list.removeAll()
}
