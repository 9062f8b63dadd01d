import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '@sluice/cli'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.js'

const folder = mkdtempSync(join(tmpdir(), 'policies-'))
let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await server.stop()
})
beforeEach(() => server.flush())

async function sluice(args: readonly string[], confirm?: () => Promise<boolean>) {
  let out = ''
  let err = ''
  const environment = {
    env: { REDIS_URL: server.url, SLUICE_BY: 'ann' },
    stdout: { write: (text: string) => (out += text) },
    stderr: { write: (text: string) => (err += text) },
    version: '0',
    ...(confirm && { confirm }),
  }
  const code = await run(args, environment)
  return { code, out, err }
}

function file(text: string): string {
  const path = join(folder, 'policies.yaml')
  writeFileSync(path, text)
  return path
}

const document = (limit: number, more = '') =>
  `version: 1\npolicies:\n  api: { limits: [{ limit: ${limit}, window: 1m }] }\n${more}`

test('plan shows the changes that apply makes', async () => {
  expect(await sluice(['plan', file(document(1))])).toEqual({
    code: 0,
    out: '+ policy api: limit: 1, window: 1m\n',
    err: '',
  })
  expect(await sluice(['apply', file(document(1)), '--yes'])).toEqual({
    code: 0,
    out: '+ policy api: limit: 1, window: 1m\nversion 1 is in force\n',
    err: '',
  })
  const more = document(2, '  more: { limits: [{ limit: 1, window: 1m }] }\n')
  expect((await sluice(['plan', file(more)])).out).toBe(
    '~ policy api\n  - limit: 1\n  + limit: 2\n+ policy more: limit: 1, window: 1m\n  api, limit api: what was used still counts\n',
  )
  expect((await sluice(['plan', file(document(1))])).out).toBe('nothing is different from version 1\n')
})

test('plan shows for each changed limit whether its usage still counts, and why not', async () => {
  const before = `version: 1
policies:
  api: { limits: [{ limit: 10, window: 1m }, { name: burst, algorithm: gcra, limit: 5, window: 1s }] }
  login: { limits: [{ limit: 5, window: 15m }] }
  search: { limits: [{ algorithm: fixedWindow, limit: 5, window: 1h }] }
  same: { limits: [{ limit: 7, window: 1m }] }
  files: { limits: [{ algorithm: fixedWindow, limit: 5000, window: 1m, unit: response-bytes }] }
overrides:
  - { policy: search, key: { ip: 192.0.2.1 }, limits: [{ limit: 50 }] }
  - { policy: search, key: { ip: 192.0.2.2 }, limits: [{ limit: 50 }] }
  - { policy: search, key: { ip: 192.0.2.3 }, limits: [{ limit: 50 }] }
`
  const after = before
    .replace('limit: 10,', 'limit: 20,')
    .replace('limit: 5, window: 1s }', 'limit: 5, window: 2s }')
    .replace(', unit: response-bytes', '')
    .replace('login: { limits: [', 'login: { limits: [{ name: day, limit: 50, window: 1d }, ')
    .replace('192.0.2.1 }, limits: [{ limit: 50 }]', '192.0.2.1 }, limits: [{ limit: 60 }]')
    .replace('192.0.2.2 }, limits: [{ limit: 50 }]', '192.0.2.2 }, limits: [{ limit: 50, window: 2h }]')
    .replace('  - { policy: search, key: { ip: 192.0.2.3 }, limits: [{ limit: 50 }] }\n', '')
  await sluice(['apply', file(before), '--yes'])
  expect((await sluice(['plan', file(after)])).out).toBe(`~ policy api
  - limits[1m].limit: 10
  + limits[1m].limit: 20
  - limits[burst].window: 1s
  + limits[burst].window: 2s
~ policy login
  + limits[day].name: day
  + limits[day].limit: 50
  + limits[day].window: 1d
~ policy files
  - unit: response-bytes
~ overrides of search (3 before, now 2)
  - limit: 50 (3 overrides)
  + limit: 60 (1 override)
  + limit: 50, window: 2h (1 override)
  api, limit api-1m: what was used still counts
  api, limit api-burst: begins anew: its window was 1s
  login, limit login-day: begins anew: it is new
  login, limit login-15m: begins anew: it shares a key with a limit that is added, removed or begins anew
  files, limit files: begins anew: its unit was response-bytes
  overrides of search: what was used of 2 limits still counts; 1 limit begins anew, the first: its window was 1h
`)
  const { carried } = JSON.parse((await sluice(['plan', file(after), '--json'])).out)
  expect(carried).toContainEqual({
    policy: 'search',
    override: 1,
    limit: 'search',
    isKept: false,
    why: expect.any(String),
  })
  expect(carried).toContainEqual({ policy: 'search', override: 2, isRemoved: true, limit: 'search', isKept: true })

  const reset = before.replace('version: 1', 'version: 1\ncarry: reset')
  const lines = (await sluice(['plan', file(reset)])).out.split('\n')
  expect(lines[0]).toBe('+ carry: reset')
  expect(lines).toContain('  same, limit same: begins anew: carry was another')
})

test('plan shows that used units of a window of the calendar still count with another calendar, and not with another window', async () => {
  const document = (limit: string) =>
    `version: 1\npolicies:\n  plan: { limits: [{ algorithm: fixedWindow, ${limit} }] }\n`
  await sluice(['apply', file(document('limit: 5, window: month, startsOn: 1')), '--yes'])
  const planned = async (limit: string) => (await sluice(['plan', file(document(limit))])).out
  for (const change of ['startsOn: 15', 'startsOn: 1, timeZone: Asia/Tokyo']) {
    expect(await planned(`limit: 5, window: month, ${change}`)).toContain('limit plan: what was used still counts')
  }
  expect(await planned('limit: 5, window: week')).toContain('limit plan: begins anew: its window was month')
})

test('plan shows that relaxed counts begin anew with other amounts, and between relaxed and exact', async () => {
  const document = (limit: number, consistency = '') =>
    `version: 1\npolicies:\n  api: { limits: [{ algorithm: slidingWindow, limit: ${limit}, window: 1m }]${consistency} }\n`
  const every = (syncEvery: string) => `, consistency: { syncEvery: ${syncEvery} }`
  const planned = async (text: string) => (await sluice(['plan', file(text)])).out
  await sluice(['apply', file(document(5)), '--yes'])
  const begins = (...changes: string[]) =>
    `${['~ policy api', ...changes, 'api, limit api: begins anew: '].join('\n  ')}`
  const every100 = '+ consistency.syncEvery: 100ms'
  expect(await planned(document(5, every('100ms')))).toBe(`${begins(every100)}its counts were exact\n`)
  await sluice(['apply', file(document(5, every('100ms'))), '--yes'])
  expect(await planned(document(5, every('200ms')))).toBe(
    '~ policy api\n  - consistency.syncEvery: 100ms\n  + consistency.syncEvery: 200ms\n',
  )
  const more = ['- limit: 5', '+ limit: 6']
  expect(await planned(document(6, every('100ms')))).toBe(
    `${begins(...more)}relaxed counts are stored by their amounts\n`,
  )
  expect(await planned(document(6))).toBe(`${begins(...more, every100.replace('+', '-'))}its counts were relaxed\n`)
})

test('without a terminal apply changes nothing unless --yes is given', async () => {
  const { code, err } = await sluice(['apply', file(document(1))])
  expect(code).toBe(2)
  expect(err).toContain('there is no terminal to ask on: --yes')
  expect((await sluice(['history'])).out).toBe('no version was saved so far\n')
})

test('apply changes nothing without confirmation', async () => {
  const { code, err } = await sluice(['apply', file(document(1))], async () => false)
  expect({ code, err }).toEqual({ code: 1, err: 'sluice: nothing was changed\n' })
  expect((await sluice(['history'])).out).toBe('no version was saved so far\n')
})

test('apply is rejected if another version was saved during the confirmation, and shows the difference', async () => {
  await sluice(['apply', file(document(1)), '--yes'])
  const mine = file(document(2))
  const { code, err } = await sluice(['apply', mine], async () => {
    const theirs = join(folder, 'theirs.yaml')
    writeFileSync(theirs, document(3))
    await sluice(['apply', theirs, '--yes', '--by', 'bob'])
    return true
  })
  expect(code).toBe(1)
  expect(err).toBe(
    'sluice: expected version 1 to be in force, and version 2 is: another version was saved meanwhile\nbob has saved:\n~ policy api\n  - limit: 1\n  + limit: 3\n',
  )
})

test('history lists versions with authors and changes, and rollback restores one', async () => {
  expect((await sluice(['rollback', '--yes'])).err).toContain('no version to go back to: nothing was applied so far')
  await sluice(['apply', file(document(1)), '--yes'])
  expect((await sluice(['rollback', '--yes'])).err).toContain('no version to go back to: version 1 is the only one')
  await sluice(['apply', file(document(2)), '--yes', '--by', 'bob'])
  expect((await sluice(['rollback', '--yes'])).out).toBe(
    '~ policy api\n  - limit: 2\n  + limit: 1\n  api, limit api: what was used still counts\nversion 3 is in force\n',
  )
  const shown = (await sluice(['history'])).out.replace(/\d{4}-\S+Z/g, 'TIME')
  expect(shown).toBe(
    [
      '     3  TIME  ann\n        ~ policy api\n          - limit: 2\n          + limit: 1\n',
      '     2  TIME  bob\n        ~ policy api\n          - limit: 1\n          + limit: 2\n',
      '     1  TIME  ann\n        + policy api: limit: 1, window: 1m\n',
    ].join(''),
  )
  const { out } = await sluice(['history', '--json'])
  expect(JSON.parse(out)).toMatchObject([
    { version: 3, by: 'ann', changes: ['~ policy api', '  - limit: 2', '  + limit: 1'] },
    { version: 2, by: 'bob' },
    { version: 1, by: 'ann', changes: ['+ policy api: limit: 1, window: 1m'] },
  ])
  expect((await sluice(['plan', file(document(1))])).out).toBe('nothing is different from version 3\n')
  const unknown = await sluice(['rollback', '99', '--yes'])
  expect(unknown).toEqual({ code: 1, out: '', err: 'sluice: expected a stored version (3, 2, 1), got 99\n' })
})

test('apply rejects a wrong file with every mistake', async () => {
  const { code, err } = await sluice(['apply', file(document(-1)), '--yes'])
  expect(code).toBe(1)
  expect(err).toMatch(/policies.yaml:3:28: policies.api.limits\[0\].limit: expected a whole number/)
})

test('plan and history show the number of overrides, but neither identities nor values of lists and headers', async () => {
  const overrides = 'overrides: [{ policy: api, key: { user: s3cret }, limits: [{ limit: 9 }] }]\n'
  const { out } = await sluice(['apply', file(document(1, overrides)), '--yes'])
  expect(out).toBe(
    '+ policy api: limit: 1, window: 1m\n+ overrides of api (1)\n  + limit: 9 (1 override)\nversion 1 is in force\n',
  )
  const other = overrides.replace('s3cret', 's3cret2')
  expect((await sluice(['plan', file(document(1, other))])).out).toContain(
    '~ overrides of api (1)\n  ~ other clients, ends or reasons\n',
  )
  const lists =
    '  more: { limits: [{ limit: 1, window: 1m }], deny: { user: [s3cret] }, match: { headers: { x-token: s3cret } }, key: user }\n'
  expect((await sluice(['plan', file(document(1, lists + overrides))])).out).toBe(
    '+ policy more: limit: 1, window: 1m, deny: not shown, match.headers: not shown, key: user\n',
  )
  expect((await sluice(['history'])).out).not.toContain('s3cret')
})
