import { rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net'
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { freePort } from '../../scripts/lib/ports.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { startProxy } from '../support/proxy.js'
import { HOST, type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'
import { examined, HEALTHY, sluice } from './support.js'

const open = closedAfterEach()

async function server(...settings: string[]): Promise<RedisServer> {
  const started = await startRedis({ settings })
  open.push(() => started.stop())
  return started
}

const finding = (severity: string, message: RegExp, advice?: RegExp) =>
  expect.objectContaining({
    severity,
    message: expect.stringMatching(message),
    ...(advice && { advice: expect.stringMatching(advice) }),
  })

describe('doctor: a healthy Redis', () => {
  test('doctor ends with 0 for a healthy Redis, with one finding per check', async () => {
    const redis = await server(...HEALTHY, 'appendonly yes')
    const report = await examined(redis.url)
    expect(report.problems).toEqual([])
    expect(report).toMatchObject({
      code: 0,
      status: 'ok',
      kind: 'single server',
      target: `${HOST}:${redis.port}`,
      nodes: [`${HOST}:${redis.port}`],
    })
    expect(report.findings.map(({ check }) => check)).toEqual([
      'version',
      'replication',
      'permissions',
      'eviction',
      'persistence',
      'connections',
      'scripts',
      'clock',
      'latency',
      'keys',
    ])
    expect(report.of('version')).toEqual([finding('ok', /^Redis \d+\.\d+\.\d+\.$/)])
    expect(report.of('latency')[0]?.data).toMatchObject({ pings: 20, storeTimeoutMs: 60_000 })
    expect(report.of('keys')).toEqual([finding('ok', /^No key starts with "sluice:"/)])
  })

  test('each finding is one sentence, and each problem has advice', async () => {
    const redis = await server('maxmemory 2mb', 'maxmemory-policy allkeys-lru')
    await redis.call('CONFIG', 'SET', 'min-replicas-to-write', 1)
    const { findings, problems } = await examined(redis.url)
    for (const { message } of findings) expect(message).toMatch(/^[A-Z“"\d].*\.$/s)
    expect(problems.length).toBeGreaterThan(1)
    for (const { advice } of problems) expect(advice).toMatch(/^[A-Z].*/)
  })

  test('doctor prints a line per finding, the total at the end, and no colours into a file', async () => {
    const redis = await server()
    const { code, stdout } = await sluice(['doctor', '--store-timeout', '60s'], { REDIS_URL: redis.url })
    expect(code).toBe(1)
    expect(stdout).toMatch(new RegExp(`^Redis at ${HOST}:${redis.port}: single server\n`))
    expect(stdout).toMatch(/\n {2}ok {7}version {6}Redis 7/)
    expect(stdout).toMatch(/\n {2}warning {2}eviction {5}maxmemory is 0/)
    expect(stdout).toMatch(/\n {24}→ Set maxmemory/)
    expect(stdout).toMatch(/\n0 errors, 1 warning \(\d+\.\d s\)\.\n$/)
    expect(stdout).not.toContain('\u001b')
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(100)
  })
})

describe('doctor: memory', () => {
  test('doctor warns of a Redis without maxmemory', async () => {
    const redis = await server()
    const report = await examined(redis.url)
    expect(report.code).toBe(1)
    expect(report.problems).toEqual([finding('warning', /^maxmemory is 0/, /maxmemory-policy noeviction/)])
  })

  test.each(['allkeys-lru', 'volatile-ttl', 'volatile-lfu', 'allkeys-random'])(
    'doctor warns of the eviction policy %s',
    async (policy) => {
      const redis = await server('maxmemory 100mb', `maxmemory-policy ${policy}`)
      const report = await examined(redis.url)
      expect([report.code, report.of('eviction')]).toEqual([1, [finding('warning', new RegExp(`\\(${policy}\\)`))]])
    },
  )

  test('doctor reports how many keys were evicted', async () => {
    const redis = await server('maxmemory 3mb', 'maxmemory-policy allkeys-lru')
    for (let n = 0; n < 40; n++) await redis.call('SET', `k${n}`, 'x'.repeat(100_000))
    const [evicted] = (await examined(redis.url)).of('eviction')
    expect(evicted).toEqual(finding('warning', /\d+ keys? evicted since it started/))
    expect(evicted?.data?.evictedKeys).toBeGreaterThan(0)
  })

  test('doctor reports a full Redis as an error, and a nearly full one as a warning', async () => {
    const redis = await server(...HEALTHY)
    // In pieces: the buffer of one large command would count as used memory, too, until Redis frees it.
    for (let n = 0; n < 200; n++) await redis.call('SET', `piece-${n}`, 'x'.repeat(100_000))
    const { used_memory: used = '' } = await redis.fields('INFO', 'memory')
    await redis.call('CONFIG', 'SET', 'maxmemory', Math.round(Number(used) * 1.05))
    expect((await examined(redis.url)).of('eviction')).toEqual([finding('warning', /^Redis is nearly full/)])
    await redis.call('CONFIG', 'SET', 'maxmemory', 10_000_000)
    const full = await examined(redis.url)
    expect([full.code, full.of('eviction')]).toEqual([
      2,
      [finding('error', /refuses writes \(OOM\)/, /Raise maxmemory/)],
    ])
    // The permissions of a full Redis are known all the same.
    expect(full.of('permissions')).toEqual([finding('ok', /permitted/)])
  })
})

describe('doctor: persistence', () => {
  test('doctor reports a failed snapshot that stops writes as an error', async () => {
    const redis = await server(...HEALTHY, 'save 3600 1')
    const [, dir = ''] = (await redis.call('CONFIG', 'GET', 'dir')) as string[]
    rmSync(dir, { recursive: true })
    await redis.call('BGSAVE')
    await until(
      'the snapshot failed',
      async () => (await redis.fields('INFO', 'persistence')).rdb_last_bgsave_status === 'err',
    )
    const report = await examined(redis.url)
    expect([report.code, report.problems]).toEqual([
      2,
      [finding('error', /snapshot of Redis failed.*MISCONF/, /its log/)],
    ])
    await redis.call('CONFIG', 'SET', 'stop-writes-on-bgsave-error', 'no')
    expect((await examined(redis.url)).problems).toEqual([finding('warning', /snapshot of Redis failed\./)])
  })

  test.each([
    ['appendonly yes', /append-only file keeps/],
    ['save 3600 1', /^Snapshots are taken/],
    ['save ""', /a restart forgets/],
  ])('doctor reports the persistence setting %s', async (setting, message) => {
    const redis = await server(...HEALTHY, setting)
    expect((await examined(redis.url)).of('persistence')).toEqual([finding('ok', message)])
  })
})

describe('doctor: replication', () => {
  test('doctor reports a replica as an error that names the master', async () => {
    const master = await server(...HEALTHY)
    const replica = await server(...HEALTHY, `replicaof ${HOST} ${master.port}`)
    await until(
      'the replica follows',
      async () => (await replica.fields('INFO', 'replication')).master_link_status === 'up',
    )
    const report = await examined(replica.url)
    expect([report.code, report.problems]).toEqual([
      2,
      [finding('error', /read-only replica/, new RegExp(`${HOST}:${master.port}`))],
    ])
    expect((await examined(master.url)).of('replication')).toEqual([finding('ok', /master with 1 replica\./)])
    await master.stop()
    await until(
      'the replica notices',
      async () => (await replica.fields('INFO', 'replication')).master_link_status === 'down',
    )
    expect((await examined(replica.url)).problems).toEqual([finding('error', /its link to the master is down/)])
  })

  test('doctor reports a master without the replicas that it demands as an error', async () => {
    const redis = await server(...HEALTHY, 'min-replicas-to-write 2')
    const report = await examined(redis.url)
    expect([report.code, report.problems]).toEqual([2, [finding('error', /NOREPLICAS.*0 of the 2 replicas/)]])
  })
})

test('doctor warns of few free connections', async () => {
  const redis = await server(...HEALTHY, 'maxclients 4')
  for (let n = 0; n < 2; n++) await connection(redis)
  expect((await examined(redis.url)).problems).toEqual([finding('warning', /^4 of 4 connections are open/)])
  await connection(redis)
  const report = await examined(redis.url)
  expect([report.code, report.problems]).toEqual([2, [finding('error', /as many clients as maxclients allows/)]])
})

async function connection(redis: RedisServer): Promise<void> {
  const before = await redis.connections()
  const socket = connect(redis.port, HOST)
  open.push(() => socket.destroy())
  await until('the connection is open', async () => (await redis.connections()) > before)
}

test('doctor warns of a script cache filled by other programs', async () => {
  const redis = await server(...HEALTHY)
  for (let n = 0; n < 600; n++) await redis.call('SCRIPT', 'LOAD', `return ${n}`)
  expect((await examined(redis.url)).problems).toEqual([finding('warning', /script cache.*60\d scripts/)])
})

test("doctor reports round trips longer than the store's timeout as an error", async () => {
  const redis = await server(...HEALTHY)
  const wire = await startProxy(redis.port)
  open.push(() => wire.stop())
  wire.toServer.pass(15)
  const report = await examined(`redis://${HOST}:${wire.port}`, '--store-timeout', '10ms', '--pings', '3')
  expect(report.of('latency')).toEqual([finding('error', /longer than the 10 ms .* of 3\./, /timeout/)])
  expect(report.of('latency')[0]?.data?.medianMs).toBeGreaterThanOrEqual(14)
})

describe('doctor: a Redis that does not respond', () => {
  async function cause(url: string, ...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await sluice(['doctor', ...args], { REDIS_URL: url })
    expect([code, stderr]).toEqual([2, ''])
    expect(stdout).not.toMatch(/\n {4}at |hunter2/)
    const json = await examined(url, ...args)
    expect(json.problems).toEqual([
      expect.objectContaining({ check: 'connection', severity: 'error', advice: expect.any(String) }),
    ])
    expect(JSON.stringify(json)).not.toContain('hunter2')
    return json.problems[0]?.message ?? ''
  }

  test('doctor names the cause if nothing listens', async () => {
    expect(await cause(`redis://:hunter2@${HOST}:${await freePort()}`)).toContain('ECONNREFUSED')
  })

  test('doctor names the cause if the host name is unknown', async () => {
    expect(await cause('redis://:hunter2@redis.invalid')).toContain('does not resolve')
  })

  test('doctor names the cause if the socket does not exist', async () => {
    expect(await cause('unix:///nowhere/redis.sock')).toContain('no such socket')
  })

  test('doctor names the cause if the password is missing or wrong', async () => {
    const redis = await server()
    await redis.call('CONFIG', 'SET', 'requirepass', 'secret')
    expect(await cause(`redis://${HOST}:${redis.port}`)).toContain('NOAUTH')
    expect(await cause(`redis://:hunter2@${HOST}:${redis.port}`)).toContain('WRONGPASS')
    expect(await cause(`redis://ann:hunter2@${HOST}:${redis.port}`)).toContain('WRONGPASS')
  })

  test('doctor names the cause if Redis accepts connections and never responds', async () => {
    const redis = await server()
    redis.kill('SIGSTOP')
    expect(await cause(redis.url, '--timeout', '500ms')).toMatch(/time that --timeout gives is up/)
    expect(await cause(redis.url)).toMatch(/does not answer in time/)
    redis.kill('SIGCONT')
  })

  test('doctor names the cause if a script blocks Redis', async () => {
    const redis = await server('busy-reply-threshold 1')
    // Once Redis is busy, no new connection becomes ready.
    await redis.call('PING')
    const client = new Redis(redis.port, HOST, { maxRetriesPerRequest: 0, retryStrategy: () => null })
    client.on('error', () => {})
    open.push(() => client.disconnect())
    const endless = client.eval('while true do end', 0).catch(() => {})
    await until('Redis is busy', () =>
      redis.call('PING').then(
        () => false,
        (error: Error) => error.message.startsWith('BUSY'),
      ),
    )
    expect(await cause(redis.url)).toContain('(BUSY)')
    await redis.call('SCRIPT', 'KILL')
    await endless
  })

  test('doctor names the cause if another program listens', async () => {
    const web = createServer((_, response) => response.end('hello')).listen(0, HOST)
    open.push(() => web.close())
    await until('the server listens', () => web.listening)
    expect(await cause(`redis://${HOST}:${(web.address() as AddressInfo).port}`)).toContain('is not Redis')
  })

  test('doctor names the cause if the server closes every connection', async () => {
    const closing = createTcpServer((socket) => socket.end()).listen(0, HOST)
    open.push(() => closing.close())
    await until('the server listens', () => closing.listening)
    expect(await cause(`redis://${HOST}:${(closing.address() as AddressInfo).port}`)).toContain('closed the connection')
  })

  test('doctor names the cause if the database does not exist', async () => {
    const redis = await server()
    expect(await cause(`${redis.url}/99`)).toContain('does not have the database')
  })
})

test('doctor warns of a password that Redis does not require, and never prints it', async () => {
  const redis = await server(...HEALTHY)
  const url = `redis://:hunter2@${HOST}:${redis.port}`
  const report = await examined(url)
  expect(report.problems).toEqual([finding('warning', /needs no password from this user/)])
  expect(JSON.stringify(report)).not.toContain('hunter2')
})
