import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { sluice } from './support.js'

const folder = mkdtempSync(join(tmpdir(), 'exit-codes-'))
const right = join(folder, 'right.yaml')
const wrong = join(folder, 'wrong.yaml')
writeFileSync(right, 'version: 1\npolicies:\n  api: { limits: [{ limit: 1, window: 1m }] }\n')
writeFileSync(wrong, 'version: 1\npolicies:\n  api: { limits: [{ limit: -1, window: 1m }] }\n')

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await server.stop()
})

/** Every command that uses Redis or PostgreSQL, with its arguments. */
const ON_REDIS = [
  ['plan', right],
  ['apply', right, '--yes'],
  ['history'],
  ['rollback', '--yes'],
  ['inspect', 'ip=192.0.2.7'],
  ['reset', 'ip=192.0.2.7', '--yes'],
  ['blocks'],
  ['bans'],
  ['block', 'ip=192.0.2.7', '--for', '1h'],
  ['unblock', 'ip=192.0.2.7', '--yes'],
  ['offenders', '--policy', 'api'],
  ['forget', 'ip=192.0.2.7', '--yes'],
]
const ON_POSTGRES = [
  ['migrate', '--yes'],
  ...['plan', 'apply', 'history', 'rollback'].map((name) => [
    name,
    '--to',
    'postgres',
    ...(name === 'plan' || name === 'apply' ? [right] : []),
    ...(name === 'apply' || name === 'rollback' ? ['--yes'] : []),
  ]),
]

test.each([...ON_REDIS, ...ON_POSTGRES])(
  '%s %s ends with 2 if its server is unreachable or not named',
  async (...args) => {
    const env = { REDIS_URL: 'redis://127.0.0.1:1', DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/d' }
    for (const given of [env, {}]) {
      const { code, stdout, stderr } = await sluice(args, given as Record<string, string>)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toMatch(/^sluice: .+/)
      expect(stderr).not.toMatch(/hunter2|\n {4}at /)
    }
  },
)

test.each([
  ['plan', wrong],
  ['apply', wrong, '--yes'],
  ['rollback', '--yes'],
  ['rollback', '7', '--yes'],
  ['inspect', 'user=ann', '--policies', wrong],
  ['reset', 'user=ann', '--yes'],
  ['reset', 'user=ann', '--policy', 'api', '--yes'],
  ['unblock', 'user=ann', '--yes'],
  ['unblock', 'user=ann', '--policy', 'api', '--yes'],
  ['validate', wrong],
  ['validate', join(folder, 'none.yaml')],
  ['explain', wrong],
  ['serve', '--document', wrong, '--dialect', 'json'],
])('%s %s %s ends with 1: the document or identity is wrong or missing', async (...args) => {
  const { code, stdout, stderr } = await sluice(args, { REDIS_URL: server.url })
  expect(code).toBe(1)
  expect(stdout + stderr).not.toBe('')
})

test.each([
  ...[...ON_REDIS, ...ON_POSTGRES].map(([name = '', ...rest]) => [name, ...rest, '--nonsense']),
  ...[
    'plan',
    'apply',
    'inspect',
    'reset',
    'block',
    'unblock',
    'offenders',
    'forget',
    'validate',
    'explain',
    'serve',
  ].map((name) => [name]),
  ['explain', join(folder, 'none.yaml')],
  ['plan', join(folder, 'none.yaml')],
  ['history', '--to', 'mysql'],
  ['history', '--schema', 'x'],
  ['migrate', '--schema', 'x'.repeat(64)],
  ['apply', right],
  ['blocks', '--kind', 'a b'],
])('%s %s ends with 2: wrong usage', async (...args) => {
  const { code, stdout, stderr } = await sluice(args, { REDIS_URL: server.url })
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/^sluice: .*\n/) })
  // apply shows the changes before it asks for confirmation.
  if (args[0] !== 'apply') expect(stdout).toBe('')
})
