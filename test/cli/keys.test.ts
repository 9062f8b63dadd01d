import { concurrency, createLimiter, redisStore, type Store, slidingLog, tokenBucket } from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { decided } from '../support/decided.js'
import { startRedis } from '../support/redis-server.js'
import { examined, HEALTHY } from './support.js'

const server = await startRedis({ settings: [...HEALTHY, 'appendonly yes'] })
const client = new Redis(server.url)
const stores: Store[] = []
// An open store would write its known blocks again after the flush.
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

beforeEach(() => server.flush())

function storeOf(prefix?: string) {
  const store = redisStore(client, { timeout: 5000, ...(prefix && { prefix }) })
  stores.push(store)
  return store
}

async function count(name: string, identities: number, store: Store = storeOf()): Promise<void> {
  const limiter = createLimiter({ name, store, limits: [slidingLog({ limit: 5, window: '1h' })] })
  await Promise.all(Array.from({ length: identities }, (_, n) => decided(limiter.consume(`k${n}`))))
}

const foreign = async (number: number) => {
  for (let n = 0; n < number; n += 1000) {
    const pairs = Array.from({ length: Math.min(1000, number - n) }, (_, i) => [`session:${n + i}`, 'x'])
    await server.call('MSET', ...pairs.flat())
  }
}

const dataOf = (report: Awaited<ReturnType<typeof examined>>) => report.of('keys')[0]?.data as Record<string, number>

describe('doctor: keys', () => {
  test('doctor counts the keys and memory of every policy, beside other keys', async () => {
    await count('api', 30)
    await count('login-by-ip', 10)
    const limiter = createLimiter({
      name: 'mixed',
      store: storeOf(),
      limits: [tokenBucket({ limit: 5, window: '1h' }), concurrency({ limit: 2, ttl: '1h' })],
    })
    await decided(limiter.consume('ann'))
    await limiter.block('ann', { for: '1h' })

    await foreign(100)

    const report = await examined(server.url)
    expect(report.problems).toEqual([])
    expect(dataOf(report)).toMatchObject({ keys: 46, blocks: 1, otherKeys: 100, isEstimated: false })
    const bytes = await Promise.all(
      [...(await server.lifetimes()).keys()]
        .filter((key) => key.startsWith('sluice:'))
        .map(async (key) => Number(await server.call('MEMORY', 'USAGE', key))),
    )
    expect(dataOf(report).bytes).toBe(bytes.reduce((sum, each) => sum + each))
    expect(report.of('keys')[1]?.data?.policies).toEqual([
      expect.objectContaining({ name: 'api', keys: 30 }),
      expect.objectContaining({ name: 'login-by-ip', keys: 10 }),
      expect.objectContaining({ name: 'mixed', keys: 3 }),
    ])
    expect(report.of('keys')[0]?.message).toMatch(
      /^46 keys of Sluice, [\d.]+ KiB, beside 100 of others, 1 block among them\.$/,
    )
  })

  test('doctor never shows identities', async () => {
    const limiter = createLimiter({ name: 'api', store: storeOf(), limit: 5, window: '1h' })
    await decided(limiter.consume('203.0.113.9'))
    await limiter.block('203.0.113.9', { for: '1h', reason: 'scraping' })
    await server.call('PERSIST', [...(await server.lifetimes()).keys()].find((key) => key.includes('203')) as string)
    expect(JSON.stringify(await examined(server.url))).not.toMatch(/203\.0\.113\.9|scraping/)
  })

  test('doctor --prefix finds keys of another prefix, including one with a hash tag', async () => {
    await count('api', 3, storeOf('{limits}:'))
    expect(dataOf(await examined(server.url)).keys).toBe(0)
    const report = await examined(server.url, '--prefix', '{limits}:')
    expect([report.code, dataOf(report).keys]).toEqual([0, 3])
  })

  test('doctor hints at keys in another database', async () => {
    await server.call('SELECT', 3)
    await server.call('SET', 'k', 'v')
    await server.call('SELECT', 0)
    const report = await examined(server.url)
    expect(report.of('keys')[0]?.message).toContain('there are keys in database 3')
    expect((await examined(`${server.url}/3`)).of('keys')[0]?.data).toMatchObject({ otherKeys: 1 })
  })

  test('doctor warns of keys without an expiry', async () => {
    await count('api', 20)
    const keys = [...(await server.lifetimes()).keys()]
    for (const key of keys.slice(0, 5)) await server.call('PERSIST', key)
    const report = await examined(server.url)
    expect([report.code, report.problems]).toEqual([
      1,
      [
        expect.objectContaining({
          check: 'keys',
          severity: 'warning',
          message: expect.stringMatching(/^5 keys of Sluice have no expiry \("api"\)/),
          advice: expect.stringContaining('PERSIST'),
        }),
      ],
    ])
  })

  test('doctor finds a key without an expiry among all keys of a database that only Sluice uses', async () => {
    await count('api', 300)
    await server.call('PERSIST', [...(await server.lifetimes()).keys()][7] as string)
    const report = await examined(server.url, '--sample', '1')
    expect(report.problems).toEqual([
      expect.objectContaining({ message: expect.stringMatching(/^1 key of Sluice has no expiry/) }),
    ])
  })

  test.each([
    ['sluice:{ip=192.0.2.7}:api:log.5.1000', /^1 key is of an older layout \(before v1\)/],
    ['sluice:v0:{ip=192.0.2.7}:api:log.5.1000', /^1 key is of an older layout \(v0\)/],
    ['sluice:v12:{ip=192.0.2.7}:api:log.5.1000', /^1 key is of a newer layout \(v12\)/],
  ])('doctor warns of keys of another layout: %s', async (key, message) => {
    await server.call('SET', key, 'x', 'PX', 100_000)
    const report = await examined(server.url)
    expect(report.problems).toEqual([
      expect.objectContaining({ severity: 'warning', message: expect.stringMatching(message) }),
    ])
  })

  test.each(['sluices', 'sluice:', 'sluice:x', 'sluice:v1', 'sluice:vintage:a'])(
    'doctor does not count keys of other programs: %s',
    async (key) => {
      await server.call('SET', key, 'x')
      const report = await examined(server.url)
      expect([report.code, dataOf(report).keys]).toEqual([0, 0])
    },
  )

  test('doctor estimates the keys of a large database from a part, within --scan-calls', async () => {
    await foreign(20_000)
    await count('api', 5000)
    await server.call('CONFIG', 'RESETSTAT')
    const report = await examined(server.url, '--scan-calls', '10', '--sample', '50')
    const calls = async (name: string) =>
      Number(/calls=(\d+)/.exec((await server.fields('INFO', 'commandstats'))[`cmdstat_${name}`] ?? '')?.[1])
    expect(await calls('scan')).toBe(10)
    expect(await calls('memory|usage')).toBeLessThanOrEqual(50)
    const { keys, keysSeen, keysTotal, isEstimated, bytes } = dataOf(report) as Record<string, number>
    expect([isEstimated, keysTotal]).toEqual([true, 25_000])
    expect(keysSeen).toBeLessThan(10_000)
    // 5,000 keys seen at a share of a fifth: one estimate in many thousands is further off.
    expect(keys).toBeGreaterThan(4000)
    expect(keys).toBeLessThan(6000)
    expect(bytes).toBeGreaterThan(50 * 4000)
    expect(report.of('keys')[0]?.message).toMatch(/^About [\d,]+ keys .* estimated from [\d,]+ of 25,000 keys\.$/)
  })

  test('doctor --scan-calls 0 reads no keys', async () => {
    await count('api', 3)
    const report = await examined(server.url, '--scan-calls', '0')
    expect([report.code, report.of('keys')]).toEqual([0, []])
  })
})
