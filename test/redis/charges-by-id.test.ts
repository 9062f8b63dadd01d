import { createLimiter, fixedWindow, type Limiter, redisStore, type Store } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { Clock } from '../contract/store-under-test.js'
import { singleClients } from '../support/clients.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { decided } from '../support/decided.js'
import { redisForTests } from '../support/redis-for-tests.js'
import { startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

const { server, client } = await redisForTests()
const open = closedAfterEach()

/** Redis has a hash in place of all but the first two. */
const KEYS = {
  'a short text': 'ann',
  'an address': '2001:db8::/56',
  'a long text': 'ann'.repeat(40),
  'a URL': 'https://example.com/search?q=rate%20limits&page=2&order=descending&lang=en#results',
  'a Japanese text': '東京都千代田区丸の内一丁目の利用者',
}

function limiterOn(store: Store, more = {}): Limiter {
  const limits = [fixedWindow({ unit: 'tokens', limit: 100, window: '1h' })]
  return createLimiter({ name: 'chat', store, limits, charges: { keep: '1h' }, ...more })
}

const cost = (tokens: number) => ({ cost: { tokens } })
const id = async (limiter: Limiter, key: string, tokens: number) =>
  (await decided(limiter.consume(key, cost(tokens)))).id as string

describe.each(Object.entries(KEYS))('for %s as a key', (_, key) => {
  const start = async () => {
    await server.flush()
    const store = redisStore(client, { clock: new Clock().read, timeout: 5000 })
    open.push(() => store.close())
    return { limiter: limiterOn(store), other: limiterOn(store) }
  }

  test('this process sees at once what a settlement by id has given back', async () => {
    const { limiter, other } = await start()
    const charge = await id(limiter, key, 100)
    // The first refusal is that of Redis, and the second one repeats it.
    for (let n = 0; n < 2; n++) expect((await decided(limiter.consume(key, cost(60)))).allowed).toBe(false)
    expect(await other.settle(charge, { tokens: 40 })).toBe('done')
    expect((await decided(limiter.consume(key, cost(60)))).allowed).toBe(true)
  })

  test('a waiting request of this process gets what a settlement by id has given back', async () => {
    const { limiter } = await start()
    const charge = await id(limiter, key, 100)
    const waiting = limiter.acquire(key, cost(60))
    // The refusal that makes it wait.
    await until('it waits', async () => (await limiter.peek(key, cost(60))).allowed === false)
    expect(await limiter.settle(charge, { tokens: 40 })).toBe('done')
    expect((await waiting).allowed).toBe(true)
  })

  test.each([1, 0.5])(
    'in an outage, this process counts on from the last settlement, by a share of %d',
    async (share) => {
      const redis = await startRedis()
      open.push(() => redis.stop())
      const { client: own, close } = singleClients['ioredis 6'](redis.port)
      open.push(close)
      const store = redisStore(own, { timeout: 5000 })
      open.push(() => store.close())
      const limiter = limiterOn(store, { unavailable: { share } })
      await store.ready()
      const [more, less] = [key, `${key}'`]
      const settled = [await id(limiter, more, 60), await id(limiter, less, 80)] as const
      expect(await limiter.settle(settled[0], { tokens: 90 })).toBe('done')
      expect(await limiter.settle(settled[1], { tokens: 5 })).toBe('done')
      redis.kill('SIGKILL')
      await until('the store notices the outage', () => store.state === 'unavailable')
      const leftOf = async (each: string) => (await limiter.peek(each, cost(0))).units.tokens?.remaining
      expect([await leftOf(more), await leftOf(less)]).toEqual([10 * share, 100 * share])
    },
  )
})
