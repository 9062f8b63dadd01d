// Release: runs clusters.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '@sluice/cli'
import {
  byUser,
  concurrency,
  createLimiter,
  type Duration,
  fixedWindow,
  gcra,
  perMinute,
  perSecond,
  type RedisStore,
  redisStore,
  slidingWindow,
} from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { policies } from '@sluice/policies'
import { Cluster, Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { algorithms } from '../support/algorithms.js'
import { type RedisCluster, startCluster } from '../support/redis-cluster.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { sluice } from './support.js'

/** Counts for as long as the test takes, whenever it runs. */
const opened = (limit: number, window: Duration) => fixedWindow({ limit, window, anchor: 'first-request' })
/** Identities that are addresses. */
const byAddress = Object.assign((ip: string) => ip, { kind: 'ip' })

const folder = mkdtempSync(join(tmpdir(), 'identities-'))
let server: RedisServer
let cluster: RedisCluster
beforeAll(async () => {
  server = await startRedis()
  cluster = await startCluster()
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await Promise.all([server.stop(), cluster.stop()])
})

describe.each(['one Redis', 'a cluster'])('on %s', (kind) => {
  let client: Redis | Cluster
  let store: RedisStore
  let prefix: string
  let runs = 0
  beforeEach(() => {
    prefix = `t${++runs}:`
    client = kind === 'one Redis' ? new Redis(server.port) : new Cluster([{ host: '127.0.0.1', port: port() }])
    store = redisStore(client, { prefix, timeout: 10_000, offenders: true, denyCache: false })
  })
  afterEach(async () => {
    await store.close()
    client.disconnect()
  })
  const port = () => (kind === 'one Redis' ? server : (cluster.masters[0] as RedisServer)).port
  const environment = () => ({ REDIS_URL: `redis://127.0.0.1:${port()}` })
  const command = (...args: string[]) => sluice([...args, '--prefix', prefix], environment())
  const inspected = async (...args: string[]) => {
    const { code, stdout, stderr } = await command('inspect', ...args, '--json')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return JSON.parse(stdout)
  }

  test('inspect shows the usage of windows of the calendar, alone and beside others', async () => {
    const year = fixedWindow<string>({ limit: 8, window: 'year', timeZone: 'Asia/Tokyo' })
    await createLimiter({ name: 'mail', store, limits: [year] }).consume('ann', { cost: 3 })
    await createLimiter({ name: 'both', store, limits: [year, gcra({ limit: 9, window: '1h' })] }).consume('ann')
    const { limits, unknown } = await inspected('key=ann')
    expect(unknown).toEqual([])
    expect(limits).toContainEqual(
      expect.objectContaining({ policy: 'mail', limit: 8, calendar: 'year', used: 3, remaining: 5 }),
    )
    expect(limits).toContainEqual(expect.objectContaining({ policy: 'both', calendar: 'year', used: 1 }))
    expect((await command('inspect', 'key=ann')).stdout).toContain('fixedWindow 8 per year')
  })

  test.each(Object.entries(algorithms))('inspect shows the usage of %s', async (_, limitOf) => {
    const limiter = createLimiter({ name: 'mail', store, limits: [limitOf(8, 3_600_000)] })
    await limiter.consume('ann', { cost: 3 })
    await limiter.consume('annabel', { cost: 1 })
    const { limits, unknown } = await inspected('key=ann')
    const verdict = await limiter.peek('ann')
    expect(unknown).toEqual([])
    expect(limits).toEqual([
      expect.objectContaining({
        policy: 'mail',
        limit: 8,
        windowMs: 3_600_000,
        capacity: verdict.limits[0]?.capacity,
      }),
    ])
    expect(limits[0].remaining).toBe(verdict.limits[0]?.remaining)
    expect(limits[0].used).toBe(limits[0].capacity - limits[0].remaining)
    expect(limits[0].resetAfterMs).toBeGreaterThan(0)
  })

  test('inspect separates several limits, in a log and under a shared key', async () => {
    const logs = createLimiter({ name: 'logs', store, limits: [perSecond(5), perMinute(50)] })
    const buckets = createLimiter({
      name: 'buckets',
      store,
      limits: [opened(6, '1h'), opened(9, '1d')],
    })
    await logs.consume('ann', { cost: 2 })
    await buckets.consume('ann', { cost: 2 })
    const { limits } = await inspected('key=ann')
    expect(limits).toHaveLength(4)
    expect(limits).toEqual([
      expect.objectContaining({ policy: 'buckets', limit: 6, used: 2 }),
      expect.objectContaining({ policy: 'buckets', limit: 9, used: 2 }),
      expect.objectContaining({ policy: 'logs', limit: 5 }),
      expect.objectContaining({ policy: 'logs', limit: 50, used: 2, remaining: 48 }),
    ])
  })

  test('inspect shows the usage of tiers and leases', async () => {
    const tiers = { free: [perMinute(5)], paid: [gcra({ limit: 50, window: '1h' })] }
    const tiered = createLimiter<{ user: string }>({
      name: 'api',
      store,
      key: byUser(({ user }) => user),
      tier: ({ user }) => (user === 'ann' ? 'paid' : 'free'),
      tiers,
    })
    await tiered.consume({ user: 'ann' }, { cost: 20 })
    const lease = { size: 10, ttl: '10s' } as const
    const leased = createLimiter({ name: 'leased', store, limits: [perMinute(40, { lease })] })
    for (let n = 0; n < 30; n++) await leased.consume('user')
    expect((await inspected('user=ann')).limits).toEqual([
      expect.objectContaining({ policy: 'api/paid', limit: 50, used: 20 }),
    ])
    const [used] = (await inspected('key=user')).limits
    // Leased units are counted ahead.
    expect(used.used).toBeGreaterThanOrEqual(30)
    expect(used.capacity).toBe(40)
  })

  test('inspect shows the usage of relaxed limits', async () => {
    const counting = redisStore(client, { prefix, timeout: 10_000 })
    const limits = [opened(100, '1h'), opened(90, '2h'), slidingWindow({ limit: 80, window: '1h' })]
    const relaxed = createLimiter({ name: 'relaxed', store: counting, limits, consistency: { syncEvery: '1m' } })
    for (let n = 0; n < 30; n++) await relaxed.consume('user')
    await counting.close()
    const { limits: found } = await inspected('key=user')
    expect(found.map(({ limit, used }: { limit: number; used: number }) => [limit, used]).sort()).toEqual([
      [100, 30],
      [80, 30],
      [90, 30],
    ])
  })

  test('inspect shows strikes, bans, blocks including networks, and lists', async () => {
    const ban = { after: 2, within: '1h', for: ['1h', '1d'] } as const
    const login = createLimiter({ name: 'login', store, key: byAddress, limit: 1, window: '1h', ban })
    for (let n = 0; n < 2; n++) await login.consume('192.0.2.7')
    await store.blocks.add({ ip: '192.0.2.0/24' }, { for: '1h', reason: 'scraping' })
    await store.blocks.add({ ip: '198.51.100.0/24' }, { for: '1h' })
    await store.list('abusers').add({ ip: '192.0.2.0/28' })
    await store.list('vip').add({ ip: '192.0.2.200' })
    const struck = await inspected('ip=192.0.2.7')
    expect(struck).toMatchObject({
      strikes: [{ policy: 'login', strikes: 1, rung: 0 }],
      lists: ['abusers'],
      blocks: [{ value: '192.0.2.0/24', reason: 'scraping' }],
    })
    // While a block holds, the limits are not read.
    expect(struck.limits).toEqual([expect.not.objectContaining({ used: expect.anything() })])
    await store.blocks.remove({ ip: '192.0.2.0/24' })
    await login.consume('192.0.2.7')
    const banned = await inspected('ip=192.0.2.7')
    expect(banned.blocks).toMatchObject([{ policy: 'login', ban: { rung: 1, strikes: 2 } }])
    expect(banned.strikes).toEqual([{ policy: 'login', strikes: 0, rung: 1 }])
    expect((await command('inspect', 'ip=192.0.2.7')).stdout).toMatch(
      /blocked or banned:\n.*\n *ip=192\.0\.2\.7 +login/,
    )
    expect((await command('inspect', 'ip=203.0.113.9')).stdout).toBe('nothing is stored of ip=203.0.113.9\n')
  })

  test('inspect --policies shows the limits and overrides of an identity in every policy and tier', async () => {
    const text = `version: 1
policies:
  api:
    match: { paths: ['/api/**'] }
    limits:
      - { name: second, algorithm: gcra, limit: 100, window: 10s }
      - { name: hour, algorithm: gcra, limit: 1000, window: 1h }
      - { name: day, algorithm: gcra, limit: 10000, window: 1d }
  mail:
    tier: plan
    key: user
    tiers: { free: [{ limit: 1, window: 1m }], paid: [{ limit: 9, window: 1m }] }
overrides:
  - { policy: mail, key: { user: ann }, limits: [{ limit: 5 }], reason: a friend }
  - { policy: api, range: 192.0.2.0/24, limits: [{ name: hour, limit: 2000 }], until: 2999-01-01T00:00:00Z }
`
    const file = join(folder, 'policies.yaml')
    writeFileSync(file, text)
    const loaded = await policies.from({ file, keys: { user: () => 'ann' }, tiers: { plan: () => 'paid' } })
    await loaded.close()
    const limits = loaded.byName.get('api')?.options.limits ?? []
    const limiter = createLimiter({
      name: 'default',
      store,
      limits: limits.map((limit) => ({ ...limit, key: byAddress })),
    })
    await limiter.consume('203.0.113.7', { cost: 3 })
    expect((await inspected('ip=203.0.113.7')).unknown).toEqual([
      { policy: 'default', key: expect.stringMatching(/^joint\./) },
    ])
    const known = await inspected('ip=203.0.113.7', '--policies', file)
    expect(known).toMatchObject({ unknown: [], overrides: [] })
    expect(known.limits).toMatchObject([
      { policy: 'default/api', limit: 100 },
      { policy: 'default/api', limit: 1000, used: 3 },
      { policy: 'default/api', limit: 10_000, used: 3 },
    ])
    expect((await inspected('ip=192.0.2.9', '--policies', file)).overrides).toEqual([
      { policy: 'api', index: 1, until: '2999-01-01T00:00:00Z' },
    ])
    expect((await inspected('user=ann', '--policies', file)).overrides).toEqual([
      { policy: 'mail', index: 0, reason: 'a friend' },
    ])
  })

  test('inspect --policies shows usage by the present amounts of the document', async () => {
    const text = (hour: number) => `version: 1
policies:
  carried:
    key: user
    limits:
      - { limit: ${hour}, window: 1h }
      - { name: rate, algorithm: gcra, limit: ${hour}, window: 1h }
      - { name: flight, algorithm: concurrency, limit: 9 }
`
    const file = join(folder, 'carried.yaml')
    writeFileSync(file, text(50))
    const loaded = await policies.from({ file, keys: { user: () => 'eve' } })
    await loaded.close()
    const limits = loaded.byName.get('carried')?.options.limits ?? []
    const limiter = createLimiter({ name: 'default', store, limits: [...limits] })
    for (let n = 0; n < 4; n++) await limiter.consume('eve')
    const withoutDocument = await inspected('user=eve')
    expect(withoutDocument.unknown).toHaveLength(3)
    expect((await command('inspect', 'user=eve')).stdout).toContain(
      '3 keys of limits that cannot be read from their names',
    )
    writeFileSync(file, text(20))
    const { limits: known, unknown } = await inspected('user=eve', '--policies', file)
    expect(unknown).toEqual([])
    expect(known).toMatchObject([
      { policy: 'default/carried', algorithm: 'slidingLog', limit: 20, used: 4, remaining: 16 },
      { policy: 'default/carried', algorithm: 'gcra', limit: 20, used: 4 },
      { policy: 'default/carried', algorithm: 'concurrency', limit: 9, used: 4 },
    ])
  })

  test('reset clears the limits of one policy or of all, and leaves those of other identities', async () => {
    const mail = createLimiter({
      name: 'mail',
      store,
      limits: [gcra({ limit: 6, window: '1h' }), gcra({ limit: 9, window: '1d' })],
    })
    const calls = createLimiter({ name: 'calls', store, limits: [perMinute(5), concurrency({ limit: 2 })] })
    for (const key of ['ann', 'bob']) {
      await mail.consume(key, { cost: 3 })
      await calls.consume(key, { cost: { requests: 5, 'concurrent-requests': 2 } })
    }
    const unconfirmed = await command('reset', 'key=ann')
    expect(unconfirmed.code).toBe(2)
    expect(unconfirmed.stderr).toContain('there is no terminal to ask on: --yes forgets it')
    expect((await command('reset', 'key=ann', '--policy', 'mail', '--yes')).stdout).toMatch(/it is forgotten\n$/)
    expect((await mail.peek('ann')).remaining).toBe(6)
    expect((await calls.peek('ann')).remaining).toBe(0)
    expect((await command('reset', 'key=ann', '--yes', '--json')).code).toBe(0)
    expect((await calls.peek('ann')).remaining).toBe(5)
    expect((await mail.peek('bob')).remaining).toBe(3)
    expect(await command('reset', 'key=ann', '--yes')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'sluice: nothing is counted of key=ann by any policy\n',
    })
  })

  test('reset accepts a policy of a document by its name', async () => {
    const limits = [{ limit: 5, window: '1h' }]
    const object = {
      version: 1,
      policies: {
        mail: { key: 'user', limits },
        calls: { key: 'user', tier: 'plan', tiers: { free: limits } },
        callsign: { key: 'user', limits },
      },
    }
    const resolvers = { keys: { user: () => 'eve' }, tiers: { plan: () => 'free' } }
    const loaded = await policies.from({ object, ...resolvers })
    const { limiter } = rateLimit({ name: 'edge', policies: loaded, store })
    const tiers = ['mail', 'calls.free', 'callsign']
    const remaining = async () =>
      Promise.all(tiers.map(async (tier) => (await limiter.peek({ user: 'eve' }, { tier })).remaining))
    for (const tier of tiers) await limiter.consume({ user: 'eve' }, { tier })
    expect(await remaining()).toEqual([4, 4, 4])
    expect((await command('reset', 'user=eve', '--policy', 'calls', '--yes')).code).toBe(0)
    expect(await remaining()).toEqual([4, 5, 4])
    expect((await command('reset', 'user=eve', '--policy', 'edge/mail', '--yes')).code).toBe(0)
    expect(await remaining()).toEqual([5, 5, 4])
    expect((await command('reset', 'user=eve', '--policy', 'edge', '--yes')).code).toBe(0)
    expect(await remaining()).toEqual([5, 5, 5])
  })

  test('forget erases everything about an identity, after a confirmation', async () => {
    const mail = createLimiter({ name: 'mail', store, limit: 5, window: '1h' })
    for (const key of ['ann', 'bob']) await mail.consume(key, { cost: 5 })
    await mail.block('ann', { for: '1h' })
    await store.list('vip').add({ key: 'ann' })
    expect((await command('forget', 'key=ann')).stderr).toContain('--yes erases it')
    const { code, stdout } = await command('forget', 'key=ann', '--yes')
    expect(code).toBe(0)
    expect(stdout).toContain('on lists: vip')
    expect(stdout).toMatch(/it is erased\n$/)
    expect((await command('inspect', 'key=ann')).stdout).toBe('nothing is stored of key=ann\n')
    expect((await inspected('key=bob')).limits).toMatchObject([{ used: 5 }])
  })

  test('offenders lists the identities refused most', async () => {
    const mail = createLimiter({ name: 'mail', store, limit: 1, window: '1h' })
    for (const key of ['ann', 'ann', 'ann', 'bob', 'bob']) await mail.consume(key)
    await expect
      .poll(async () => JSON.parse((await command('offenders', '--policy', 'mail', '--json')).stdout), {
        timeout: 30_000,
      })
      .toMatchObject({
        refusals: 3,
        offenders: [
          { kind: 'key', value: 'ann', refusals: 2 },
          { kind: 'key', value: 'bob', refusals: 1 },
        ],
      })
    const { stdout } = await command('offenders', '--policy', 'mail', '--max', '1', '--in', '10m')
    expect(stdout).toMatch(/^refused +share +identity\n2 +66\.7 % +key=ann\n\n3 refusals since 20.*Z\n$/)
    expect((await command('offenders', '--policy', 'nobody')).stdout).toMatch(/^"nobody" has refused no identity since/)
  })

  test('reset and forget change nothing without confirmation', async () => {
    const mail = createLimiter({ name: 'mail', store, limit: 5, window: '1h' })
    await mail.consume('ann', { cost: 2 })
    for (const name of ['reset', 'forget']) {
      let printed = ''
      const output = { write: (text: string) => (printed += text) }
      const code = await run([name, 'key=ann', '--prefix', prefix], {
        env: environment(),
        stdout: output,
        stderr: output,
        version: '0',
        confirm: async () => false,
      })
      expect({ code, printed }).toEqual({ code: 1, printed: expect.stringContaining('nothing was changed') })
    }
    expect((await mail.peek('ann')).remaining).toBe(3)
  })
})

test.each([
  [['inspect', 'ann'], /expected KIND=VALUE/],
  [['inspect'], /expected KIND=VALUE/],
  [['inspect', 'ip=nonsense'], /expected an address/],
  [['inspect', 'header:x-api-key=s3cret'], /process lists/],
  [['inspect', 'user+header:x-api-key=["a","s3cret"]'], /process lists/],
  [['inspect', 'ip+route=192.0.2.7'], /ip\+route: expected 2 values as a JSON array/],
  [['inspect', 'user=ann', '--policies', '/nowhere.yaml'], /cannot read "\/nowhere.yaml" \(ENOENT\)/],
  [['reset', 'ip=nonsense', '--yes'], /expected an address/],
  [['forget', 'nonsense', '--yes'], /expected KIND=VALUE/],
  [['offenders'], /--policy: expected the name of a policy/],
  [['offenders', 'mail'], /unexpected argument "mail"/],
  [['block', '__proto__=x', '--for', '1h'], /expected KIND=VALUE with a kind such as ip or user, got "__proto__"/],
  [['block', 'us er=x', '--for', '1h'], /expected KIND=VALUE with a kind such as ip or user, got "us er"/],
  [['offenders', '--policy', 'mail', '--in', '2h'], /--in: expected 10m, 1h or 1d, got "2h"/],
  [['offenders', '--policy', 'mail', '--max', '0'], /--max: expected a whole number from 1 to 1000/],
])('wrong arguments are rejected with a sentence: %j', async (args, message) => {
  const { code, stdout, stderr } = await sluice(args, { REDIS_URL: server.url })
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(message)
  expect(stderr).not.toContain('s3cret')
})
