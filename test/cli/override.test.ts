import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, redisStore } from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { sluice as runSluice } from './support.js'

const folder = mkdtempSync(join(tmpdir(), 'override-'))
const file = join(folder, 'policies.yaml')
let server: RedisServer
beforeAll(async () => {
  writeFileSync(file, 'version: 1\npolicies:\n  api: { key: user, limits: [{ limit: 100, window: 1m }] }\n')
  server = await startRedis()
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await server.stop()
})
beforeEach(() => server.flush())

const sluice = (...args: string[]) => runSluice(args, { REDIS_URL: server.url, SLUICE_BY: 'ann' })

async function listed(...args: string[]): Promise<Record<string, unknown>[]> {
  return JSON.parse((await sluice('changes', '--json', ...args)).stdout).entries
}

test('an override is set, listed and removed by commands, which show its effect first', async () => {
  await sluice('apply', file, '--yes')
  const args = ['override', 'set', 'user=42', '--policy', 'api', '--limit', '1000', '--until', '2100-01-31']
  const unconfirmed = await sluice(...args)
  expect(unconfirmed.stderr).toContain('there is no terminal to ask on: --yes puts it in force')
  expect(await sluice(...args, '--reason', 'trial', '--yes')).toEqual({
    code: 0,
    stdout:
      'policy api: user=42, until 2100-01-31T00:00:00Z\n' +
      '  limit api: slidingLog 100 per 1m → slidingLog 1000 per 1m: what was used still counts\nit is in force\n',
    stderr: '',
  })
  expect((await sluice('override', 'list')).stdout).toMatch(
    /^policy +client +limits +until +by +at +reason\napi +user=42 +\[\{"limit":1000\}\] +2100-01-31T00:00:00Z +ann +20\S+ +trial\n$/,
  )
  // It is replaced once it was shown.
  const again = await sluice(...args.with(6, '2000'), '--yes', '--by', 'bob')
  expect(again.stdout).toContain('it replaces:\npolicy')
  const removed = await sluice('override', 'remove', 'user=42', '--policy', 'api', '--yes')
  expect(removed).toMatchObject({ code: 0, stdout: expect.stringMatching(/user=42[\s\S]*it is ended\n$/) })
  expect(await sluice('override', 'remove', 'user=42', '--policy', 'api', '--yes')).toMatchObject({ code: 1 })
  expect((await sluice('override', 'list')).stdout).toBe('there is no override beside the document\n')
  expect((await listed()).map(({ by, action, state }) => `${by} ${action} ${state}`)).toEqual([
    'ann override-remove done',
    'bob override done',
    'ann override done',
    'ann apply done',
  ])
})

test('block, unblock, reset, forget, apply and rollback have entries with their author', async () => {
  const client = new Redis(server.url)
  const store = redisStore(client)
  await createLimiter({ name: 'mail', store, limit: 5, window: '1h' }).consume('bob')
  await store.close()
  client.disconnect()
  const commands = [
    ['apply', file],
    ['block', 'key=bob', '--for', '1d', '--policy', 'mail', '--reason', 'spam'],
    ['unblock', 'key=bob', '--policy', 'mail'],
    ['reset', 'key=bob', '--policy', 'mail'],
  ]
  for (const [name = '', ...args] of commands) {
    const { stderr } = await sluice(name, ...args, '--by', 'eve', ...(name === 'block' ? [] : ['--yes']))
    expect(stderr.replace(/looking.*\n?/g, '')).toBe('')
  }
  const [reset, unblock, block, apply] = await listed()
  const of = { by: 'eve', policy: 'mail', kind: 'key', value: 'bob', state: 'done' }
  expect(reset).toMatchObject({ ...of, action: 'reset', before: { counts: [{ policy: 'mail' }] } })
  expect(unblock).toMatchObject({ ...of, action: 'unblock', before: { reason: 'spam', times: 1 } })
  expect(block).toMatchObject({ ...of, action: 'block', after: { for: '1d', reason: 'spam' } })
  expect(apply).toMatchObject({
    by: 'eve',
    action: 'apply',
    before: { document: 'default', version: 0 },
    after: { document: 'default', version: 1 },
  })
  await sluice('forget', 'key=bob', '--yes')
  const after = await listed()
  expect(JSON.stringify(after)).not.toContain('bob')
  expect(after[0]).toMatchObject({ by: 'ann', action: 'forget', state: 'done' })
  expect((await sluice('changes')).stdout).toMatch(/^number +at +by +change/)
  const page = await sluice('changes', '--max', '2')
  expect(page.stderr).toBe('sluice: there are more: --cursor 4 lists the next\n')
  expect((await listed('--max', '2', '--cursor', '4')).map(({ action }) => action)).toEqual(['unblock', 'block'])
})

test('wrong command lines of override say what to write', async () => {
  const none = await sluice('override', 'list')
  expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('sluice apply saves one') })
  await sluice('apply', file, '--yes')
  const set = ['override', 'set', 'user=42', '--policy', 'api']
  const wrong: [string[], string][] = [
    [['override', 'put'], 'expected set, list or remove, got "put"'],
    [['override', 'set', '42', '--policy', 'api'], 'expected KIND=VALUE'],
    [['override', 'set', 'header:x-api-key=secret', '--policy', 'api'], 'arguments show in process lists'],
    [['override', 'set', 'user=42'], '--policy: expected'],
    [[...set, '--until', '2100-01-01'], 'expected one of --limit and --limits'],
    [[...set, '--limit', 'x', '--until', '2100-01-01'], '--limit: expected a whole number'],
    [[...set, '--limits', '{', '--until', '2100-01-01'], '--limits: expected a JSON array'],
    [[...set, '--limit', '5'], '--until: expected a time'],
    [[...set, '--limit', '5', '--until', 'friday', '--yes'], 'until: expected a time with a zone'],
    [[...set, '--limit', '5', '--until', '2020-01-01', '--yes'], 'until: expected a time in the future'],
    [
      ['override', 'set', 'user=42', '--policy', 'apl', '--limit', '5', '--until', '2100-01-01', '--yes'],
      'expected "api"',
    ],
    [['override', 'list', 'user=42'], 'unexpected argument'],
  ]
  for (const [args, message] of wrong) {
    const { code, stderr } = await sluice(...args)
    expect(stderr).toContain(message)
    expect(code).toBe(2)
  }
})
