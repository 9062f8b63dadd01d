import { createLimiter, redisStore, SluiceError, type Store } from '@sluice/core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { algorithms } from '../support/algorithms.js'
import { singleClients } from '../support/clients.js'
import { insist } from '../support/outages.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'

let server: RedisServer
let store: Store
let close: () => void
beforeAll(async () => {
  server = await startRedis()
  const owned = singleClients['ioredis 6'](server.port)
  await owned.ready
  store = insist(redisStore(owned.client, { timeoutMs: 5000 }))
  close = owned.close
})
beforeEach(() => server.flush())
afterAll(async () => {
  await store.close()
  close()
  await server.stop()
})

const FOREIGN: Record<string, readonly string[]> = {
  'a text': ['SET', 'KEY', 'hello'],
  'an empty text': ['SET', 'KEY', ''],
  'a list': ['RPUSH', 'KEY', 'a', 'b'],
  'a sorted set': ['ZADD', 'KEY', '1', 'a'],
}

describe.each(Object.entries(algorithms))('%s', (_name, algorithm) => {
  test.each(Object.entries(FOREIGN))(
    'finds %s under its key: decides afresh, and so do those beside it',
    async (_, put) => {
      const limiter = createLimiter({ name: 'foreign', store, limits: [algorithm(3, 3_600_000)] })
      await limiter.consume('victim')
      const [key] = [...(await server.lifetimes()).keys()] as [string]
      await server.call('DEL', key)
      const [command, ...args] = put as [string, ...string[]]
      await server.call(command, ...args.map((arg) => (arg === 'KEY' ? key : arg)))

      const verdicts = await Promise.all([
        limiter.consume('before'),
        limiter.consume('victim'),
        limiter.consume('after'),
      ])

      expect(verdicts.map(({ allowed }) => allowed)).toEqual([true, true, true])
      expect((await limiter.peek('after')).remaining).toBe(2)
      for (const leftMs of (await server.lifetimes()).values()) expect(leftMs).toBeGreaterThan(0)
    },
  )
})

test('a closed store says so at once', async () => {
  const owned = singleClients['ioredis 6'](server.port)
  await owned.ready
  const closed = redisStore(owned.client, { timeoutMs: 60_000 })
  await closed.close()
  const limiter = createLimiter({ store: closed, limit: 1, window: '1m' })
  expect((await limiter.consume('k')).kind).toBe('unavailable')
  await expect(limiter.block('k', { for: '1h' })).rejects.toThrow(SluiceError)
  await expect(limiter.block('k', { for: '1h' })).rejects.toThrow('the store is closed')
  owned.close()
})

test.each(Object.entries(algorithms))('%s: a peek leaves what is not ours where it is', async (_, algorithm) => {
  const limiter = createLimiter({ name: 'foreign', store, limits: [algorithm(3, 3_600_000)] })
  const verdict = await limiter.consume('victim')
  const [key] = [...(await server.lifetimes()).keys()] as [string]
  await server.call('DEL', key)
  await server.call('HSET', key, 'someone', 'else')
  expect((await limiter.peek('victim')).allowed).toBe(true)
  await limiter.release(verdict)
  await limiter.renew(verdict)
  await limiter.refund('victim', verdict)
  expect((await limiter.consume('victim', { cost: 4 })).reason).toBe('impossible')
  expect(await server.call('TYPE', key)).toBe('hash')
})
