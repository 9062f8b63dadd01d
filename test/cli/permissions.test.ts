import { readFileSync } from 'node:fs'
import { createLimiter, redisStore, slidingLog } from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { decided } from '../support/decided.js'
import { HOST, startRedis } from '../support/redis-server.js'
import { examined, HEALTHY, rulesIn } from './support.js'

const SECURITY = readFileSync(new URL('../../SECURITY.md', import.meta.url), 'utf8')
const BASE = rulesIn(SECURITY, /^ACL SETUSER sluice (on [^#\n]*)$/m)

const server = await startRedis({ settings: [...HEALTHY, 'appendonly yes'] })
afterAll(() => server.stop())

const url = `redis://sluice:choose-a-password@${HOST}:${server.port}`
const grant = (...rules: readonly string[]) => server.call('ACL', 'SETUSER', 'sluice', 'reset', ...rules)

beforeEach(() => server.flush())

/** Counts and blocks a little, so that there is data to change. */
async function use(): Promise<void> {
  const client = new Redis(server.url)
  const store = redisStore(client, { timeout: 5000 })
  const limiter = createLimiter({ name: 'api', store, limits: [slidingLog({ limit: 5, window: '1h' })] })
  for (let n = 0; n < 20; n++) await decided(limiter.consume(`k${n}`))
  await limiter.block('k1', { for: '1h' })
  await store.close()
  client.disconnect()
}

/** The names of the commands that ran, from INFO commandstats. */
async function commandsRun(): Promise<string[]> {
  const fields = await server.fields('INFO', 'commandstats')
  return Object.entries(fields).flatMap(([name, text]) =>
    name.startsWith('cmdstat_') && !/^calls=0,/.test(text) ? name.replace('cmdstat_', '') : [],
  )
}

describe('doctor only reads', () => {
  /** Includes the commands of a reading script, and no command that writes. */
  const READING = [
    'auth',
    'config|get',
    'dbsize',
    'eval',
    'evalsha',
    'exists',
    'get',
    'getrange',
    'hlen',
    'hmget',
    'info',
    'memory|usage',
    'pttl',
    'scan',
    'time',
    'zcard',
    'zcount',
    'zrange',
    'zrangebyscore',
    'zscore',
  ]

  test('doctor runs only commands that read, and changes no key', async () => {
    await use()
    await server.call('ACL', 'SETUSER', 'sluice', 'reset', 'on', '>choose-a-password', '~*', '+@all')
    const before = await contents()
    const changesBefore = (await server.fields('INFO', 'persistence')).rdb_changes_since_last_save
    await server.call('CONFIG', 'RESETSTAT')
    await examined(url)
    const ran = (await commandsRun()).filter((name) => name !== 'config|resetstat')
    expect(ran.filter((name) => !READING.includes(name))).toEqual([])
    expect(ran).toEqual(expect.arrayContaining(['eval', 'scan', 'memory|usage', 'pttl']))
    const changes = (await server.fields('INFO', 'persistence')).rdb_changes_since_last_save
    expect([changes, await contents()]).toEqual([changesBefore, before])
  })

  test('MONITOR shows no writing command of doctor', async () => {
    await use()
    await server.call('ACL', 'SETUSER', 'sluice', 'reset', 'on', '>choose-a-password', '~*', '+@all')
    // Without the ready check: ioredis would take the output of MONITOR for its reply.
    const client = new Redis(server.url, { enableReadyCheck: false })
    const monitor = await client.monitor()
    const seen = new Set<string>()
    monitor.on('monitor', (_: string, args: string[]) => seen.add(args[0]?.toLowerCase() ?? ''))
    await examined(url, '--scan-calls', '1')
    await expect.poll(() => seen.has('scan') && seen.has('memory')).toBe(true)
    monitor.disconnect()
    client.disconnect()
    const writing = new Set((await server.call('ACL', 'CAT', 'write')) as string[])
    expect([...seen].filter((name) => writing.has(name))).toEqual([])
  })

  test('doctor works for a read-only user, and reports that limits need more permissions', async () => {
    await use()
    await grant('on', '>choose-a-password', '~*', '-@all', '+@read', '+info', '+time', '+config|get')
    const report = await examined(url)
    expect(report.code).toBe(2)
    expect(report.problems).toEqual([
      expect.objectContaining({
        check: 'permissions',
        severity: 'error',
        message: expect.stringContaining('may not run EVAL and EVALSHA'),
        advice: 'Grant it: ACL SETUSER sluice +eval +evalsha',
      }),
    ])
    expect(report.of('keys')[0]?.data).toMatchObject({ keys: 24, blocks: 1 })
  })

  async function contents(): Promise<unknown[]> {
    const keys = [...(await server.lifetimes()).keys()].sort()
    return Promise.all(
      keys.map(async (key) => [key, await server.call('DUMP', key), await server.call('PEXPIRETIME', key)]),
    )
  }
})

describe('doctor: permissions', () => {
  test('the permissions in SECURITY.md suffice for limits, and doctor names what it cannot see', async () => {
    await use()
    await grant(...BASE)
    const report = await examined(url)
    expect(report.of('permissions')).toEqual([
      expect.objectContaining({
        severity: 'ok',
        message: 'All 23 commands that Sluice needs are permitted on sluice:*.',
      }),
    ])
    expect(report.code).toBe(1)
    expect(report.problems).toEqual([
      expect.objectContaining({
        check: 'visibility',
        severity: 'warning',
        message: 'Not permitted to see: SCAN (keys).',
        advice: expect.stringContaining('+scan'),
      }),
    ])
  })

  test('doctor sees everything with the permissions that it advises', async () => {
    await use()
    await grant(...BASE)
    for (let tries = 0; tries < 5; tries++) {
      const [{ advice = '' } = {}] = (await examined(url)).of('visibility')
      const [, rules] = /who has (.*)$/.exec(advice) ?? []
      if (!rules) break
      await server.call('ACL', 'SETUSER', 'sluice', ...rules.split(' '))
    }
    expect((await examined(url)).problems).toEqual([])
  })

  test.each(BASE.filter((rule) => rule.startsWith('+') && !['+info', '+eval'].includes(rule)))(
    'doctor reports a missing %s as an error with the grant',
    async (rule) => {
      await grant(...BASE, '+scan', '+memory|usage', rule.replace('+', '-'))
      const report = await examined(url)
      const name = rule.slice(1)
      expect(report.code).toBe(2)
      expect(report.of('permissions')).toEqual([
        expect.objectContaining({
          severity: 'error',
          message: expect.stringContaining(`may not run ${name.toUpperCase()}`),
          advice: `Grant it: ACL SETUSER sluice ${rule}`,
        }),
      ])
    },
  )

  test('without INFO doctor runs the other checks, and reports the missing ones once', async () => {
    await grant(...BASE, '+scan', '+memory|usage', '-info')
    const report = await examined(url)
    expect(report.of('permissions')).toMatchObject([{ severity: 'ok' }])
    expect(report.problems).toEqual([
      expect.objectContaining({
        check: 'visibility',
        message: expect.stringMatching(/^Not permitted to see: INFO \(version, replication, eviction, .*scripts\)\.$/),
      }),
    ])
  })

  test('doctor reports a prefix that the user cannot access as an error', async () => {
    await grant(...BASE)
    const report = await examined(url, '--prefix', 'limits:')
    expect(report.of('permissions')).toEqual([
      expect.objectContaining({ severity: 'error', advice: 'Grant them: ACL SETUSER sluice ~limits:*' }),
    ])
  })

  test('doctor reports a renamed command as an error', async () => {
    const renamed = await startRedis({
      settings: [...HEALTHY, 'rename-command SETRANGE ""', 'rename-command CONFIG ""'],
    })
    const report = await examined(renamed.url)
    await renamed.stop()
    expect(report.of('permissions')).toEqual([
      expect.objectContaining({ severity: 'error', message: 'Redis does not know SETRANGE: renamed or disabled.' }),
    ])
    expect(report.of('visibility')).toEqual([
      expect.objectContaining({ message: 'Not permitted to see: CONFIG GET (persistence).' }),
    ])
  })
})
