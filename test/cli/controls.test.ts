import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, redisStore } from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { sluice } from './support.js'

/** Clears the screen in one byte, reverses the text, breaks the line, hides. */
const EVIL = 'e\u009b2J\u202ev\u2028i\u200bl\u001b[2J\u{e0041}é'
const EVIL_LINE = `${EVIL}\nsluice: version 9 is in force`
/** All characters that a terminal obeys or hides. */
const STEERING = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const command = (...args: string[]) => sluice(args, { REDIS_URL: server.url, SLUICE_BY: 'ann' })

/** The output of a command, expected to contain none of these characters, nor a line that a client injected. */
async function printed(args: readonly string[]) {
  const { stdout, stderr } = await command(...args)
  expect(stdout + stderr, args.join(' ')).not.toMatch(STEERING)
  expect(`${stdout}${stderr}`.split('\n'), args.join(' ')).not.toContain('sluice: version 9 is in force')
  return stdout
}

test('output that quotes a client cannot control the terminal, and JSON stays unchanged', async () => {
  const client = new Redis(server.url)
  const store = redisStore(client, { offenders: true, timeout: 10_000 })
  try {
    const limiter = createLimiter({ name: 'api', store, limit: 1, window: '1h' })
    for (let n = 0; n < 3; n++) await limiter.consume(EVIL_LINE)
  } finally {
    await store.close()
    client.disconnect()
  }
  const key = `key=${EVIL_LINE}`
  for (const json of [[], ['--json']]) {
    await printed(['offenders', '--policy', 'api', ...json])
    await printed(['inspect', key, ...json])
    await printed(['block', key, '--for', '1h', '--reason', EVIL_LINE, ...json])
    await printed(['blocks', ...json])
    await printed(['inspect', key, ...json])
    await printed(['unblock', key, '--yes', ...json])
    await printed(['unblock', key, '--yes', ...json])
    await printed(['reset', key, '--yes', ...json])
    await printed(['reset', key, '--yes', ...json])
    await printed(['forget', key, '--yes', ...json])
  }
  await command('block', key, '--for', '1h', '--reason', EVIL_LINE)
  const [block] = JSON.parse(await printed(['blocks', '--json']))
  expect(block).toMatchObject({ kind: 'key', value: EVIL_LINE, reason: EVIL_LINE })
  expect(await printed(['blocks'])).toContain('e\\u009b2J\\u202ev\\u2028i\\u200bl\\u001b[2J\\udb40\\udc41é\\nsluice:')
})

test.each([
  [EVIL],
  [`--${EVIL}`],
  ['blocks', EVIL],
  ['blocks', '--max', EVIL],
  ['block', EVIL],
  ['block', `ip=${EVIL}`, '--for', '1h'],
  ['block', 'ip=192.0.2.7', '--for', EVIL],
  ['validate', EVIL],
  ['explain', EVIL],
  ['plan', EVIL],
  ['offenders', '--policy', 'api', '--in', EVIL],
  ['rollback', EVIL],
  ['doctor', '--cacert', EVIL],
])('an error that quotes an argument cannot control the terminal: %j', async (...args) => {
  await printed(args)
})

test('history escapes the name of an author', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'controls-'))
  const file = join(folder, 'policies.yaml')
  writeFileSync(file, 'version: 1\npolicies:\n  api: { limits: [{ limit: 1, window: 1m }] }\n')
  await printed(['apply', file, '--yes', '--by', EVIL_LINE])
  rmSync(folder, { recursive: true })
  await printed(['history'])
  const [version] = JSON.parse(await printed(['history', '--json']))
  expect(version.by).toBe(EVIL_LINE)
})
