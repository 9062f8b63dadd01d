import { redisStore, SluiceError, slidingLog } from '@sluice/core'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { createLimiter } from '../contract/create-limiter.js'
import { algorithms } from '../support/algorithms.js'
import { singleClients } from '../support/clients.js'
import { insist } from '../support/outages.js'
import { redisForTests } from '../support/redis-for-tests.js'

const { server, client } = await redisForTests()
const store = insist(redisStore(client, { timeout: 5000 }))
beforeEach(() => server.flush())
afterAll(() => store.close())

const FOREIGN: Record<string, readonly string[]> = {
  'a text': ['SET', 'KEY', 'hello'],
  'an empty text': ['SET', 'KEY', ''],
  'a list': ['RPUSH', 'KEY', 'a', 'b'],
  'a sorted set': ['ZADD', 'KEY', '1', 'a'],
}

describe.each(Object.entries(algorithms))('%s', (_name, algorithm) => {
  test.each(Object.entries(FOREIGN))(
    'a decision that finds %s under its key starts afresh, and decisions beside it are not affected',
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

/** Values of many kinds, of any length. */
const FILLS: Record<string, (length: number) => string> = {
  'one letter': (length) => 'x'.repeat(length),
  sentences: (length) => 'A person wrote this here, and means nothing. '.repeat(length).slice(0, length),
  'letters that go up': (length) => 'abcdefghijklmnopqrstuvwxyz'.repeat(length).slice(0, length),
  'letters that go down': (length) => 'zyxwvutsrqponmlkjihgfedcba'.repeat(length).slice(0, length),
  digits: (length) => '17634720001763475600'.repeat(length).slice(0, length),
  'zero bytes': (length) => '\0'.repeat(length),
  'zero bytes and a one': (length) => `${'\0'.repeat(Math.max(0, length - 1))}\x01`.slice(0, length),
}

// A log has no fixed length that sets it apart from other values.
test.each(Object.entries(FILLS))('a value of %s and any length does not count as a log', async (_, fill) => {
  const limits = [slidingLog({ limit: 3, window: '1h' }), slidingLog({ limit: 20, window: '60d' })]
  const limiter = createLimiter({ name: 'foreign', store, limits })
  const first = await limiter.consume('victim')
  const [key] = [...(await server.lifetimes()).keys()] as [string]
  const victims = Array.from({ length: 200 }, (_, length) => `victim-${length}`)
  await Promise.all(victims.map((victim, length) => server.call('SET', key.replace('victim', victim), fill(length))))

  for (const remaining of [2, 1, 0]) {
    const verdicts = await Promise.all(victims.map((victim) => limiter.consume(victim)))
    expect(verdicts.map(({ remaining }) => remaining)).toEqual(victims.map(() => remaining))
    expect(verdicts[0]?.limits.map(({ remaining }) => remaining)).toEqual([remaining, remaining + 17])
  }
  expect(await limiter.refund('victim', first)).toBe(true)
  for (const leftMs of (await server.lifetimes()).values()) expect(leftMs).toBeGreaterThan(0)
})

test('operations on a closed store fail at once and say that it is closed', async () => {
  const owned = singleClients['ioredis 6'](server.port)
  await owned.ready
  const closed = redisStore(owned.client, { timeout: 60_000 })
  await closed.close()
  const limiter = createLimiter({ store: closed, limit: 1, window: '1m' })
  expect((await limiter.consume('k')).kind).toBe('unavailable')
  await expect(limiter.block('k', { for: '1h' })).rejects.toThrow(SluiceError)
  await expect(limiter.block('k', { for: '1h' })).rejects.toThrow('the store is closed')
  owned.close()
})

test.each(Object.entries(algorithms))(
  '%s: a peek, a refusal and a refund leave a foreign value under the key',
  async (_, algorithm) => {
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
  },
)
