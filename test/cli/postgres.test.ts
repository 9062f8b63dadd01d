// Release: runs PostgreSQL.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '@sluice/cli'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { freePort } from '../../scripts/lib/ports.js'
import { type PostgresServer, startPostgres } from '../support/postgres-server.js'

const folder = mkdtempSync(join(tmpdir(), 'policies-'))
let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
  await server.query(`CREATE ROLE locked LOGIN PASSWORD 'right'; CREATE ROLE reader LOGIN`)
  expect(await sluice(['migrate', '--yes'])).toEqual({ code: 0, out: 'the tables are of version 1\n', err: '' })
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await server.stop()
})
beforeEach(async () => {
  await server.query('TRUNCATE sluice_policies')
})

async function sluice(
  args: readonly string[],
  { url = server.url, confirm }: { url?: string; confirm?: () => Promise<boolean> } = {},
) {
  let out = ''
  let err = ''
  const environment = {
    env: { DATABASE_URL: url, SLUICE_BY: 'ann' },
    stdout: { write: (text: string) => (out += text) },
    stderr: { write: (text: string) => (err += text) },
    version: '0',
    ...(confirm && { confirm }),
  }
  const code = await run(args, environment)
  return { code, out, err }
}

function file(text: string, name = 'policies.yaml'): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const document = (limit: number, more = '') =>
  `version: 1\npolicies:\n  api: { limits: [{ limit: ${limit}, window: 1m }] }\n${more}`
const TO = ['--to', 'postgres']

test('plan, apply, history and rollback work the same with PostgreSQL', async () => {
  expect((await sluice(['history', ...TO])).out).toBe('no version was saved so far\n')
  expect((await sluice(['plan', ...TO, file(document(1))])).out).toBe('+ policy api: limit: 1, window: 1m\n')
  expect(await sluice(['apply', ...TO, file(document(1)), '--yes'])).toEqual({
    code: 0,
    out: '+ policy api: limit: 1, window: 1m\nversion 1 is in force\n',
    err: '',
  })
  await sluice(['apply', ...TO, file(document(2)), '--yes', '--by', 'bob'])
  expect((await sluice(['plan', ...TO, file(document(2))])).out).toBe('nothing is different from version 2\n')
  expect((await sluice(['rollback', ...TO, '--yes'])).out).toBe(
    '~ policy api\n  - limit: 2\n  + limit: 1\n  api, limit api: what was used still counts\nversion 3 is in force\n',
  )
  expect(JSON.parse((await sluice(['history', ...TO, '--json'])).out)).toMatchObject([
    { version: 3, by: 'ann', changes: ['~ policy api', '  - limit: 2', '  + limit: 1'] },
    { version: 2, by: 'bob' },
    { version: 1, by: 'ann', changes: ['+ policy api: limit: 1, window: 1m'] },
  ])
  expect((await sluice(['history', ...TO, '--name', 'other'])).out).toBe('no version was saved so far\n')
})

test('apply to PostgreSQL is rejected if another version was saved during the confirmation', async () => {
  await sluice(['apply', ...TO, file(document(1)), '--yes'])
  const { code, err } = await sluice(['apply', ...TO, file(document(2))], {
    confirm: async () => {
      await sluice(['apply', ...TO, file(document(3), 'theirs.yaml'), '--yes', '--by', 'bob'])
      return true
    },
  })
  expect(code).toBe(1)
  expect(err).toBe(
    'sluice: expected version 1 to be in force, and version 2 is: another version was saved meanwhile\nbob has saved:\n~ policy api\n  - limit: 1\n  + limit: 3\n',
  )
})

describe('migrate', () => {
  test('migrate asks for confirmation, and changes nothing if the tables are up to date', async () => {
    await server.query('CREATE SCHEMA limits')
    const there = ['migrate', '--schema', 'limits']
    expect(await sluice(there, { confirm: async () => false })).toEqual({
      code: 1,
      out: '',
      err: 'sluice: nothing was changed\n',
    })
    expect((await sluice(there)).err).toContain('there is no terminal to ask on')
    expect((await sluice(there, { confirm: async () => true })).out).toBe('the tables are of version 1\n')
    expect((await sluice(there)).out).toBe('the tables are up to date, of version 1\n')
    const [saved] = await Promise.all([sluice(['apply', ...TO, '--schema', 'limits', file(document(1)), '--yes'])])
    expect(saved?.code).toBe(0)
    expect((await sluice(['history', ...TO])).out).toBe('no version was saved so far\n')
  })

  test('two concurrent migrations create the tables once', async () => {
    await server.query('CREATE SCHEMA twice')
    const both = await Promise.all([1, 2].map(() => sluice(['migrate', '--yes', '--schema', 'twice'])))
    expect(both.map(({ code, err }) => ({ code, err }))).toEqual([
      { code: 0, err: '' },
      { code: 0, err: '' },
    ])
  })

  test('migrate --sql prints SQL that can be run by hand, repeatedly', async () => {
    await server.query('CREATE SCHEMA printed')
    const { out } = await sluice(['migrate', '--sql', '--schema', 'printed'], { url: '' })
    await server.query(out)
    await server.query(out)
    expect((await sluice(['migrate', '--schema', 'printed'])).out).toBe('the tables are up to date, of version 1\n')
  })
})

test('--postgres-file names PostgreSQL, and an argument cannot', async () => {
  const path = file(`${server.url}\n`, 'url')
  expect((await sluice(['history', ...TO, '--postgres-file', path], { url: '' })).code).toBe(0)
  const { code, err } = await sluice(['history', ...TO, '--postgres', server.url])
  expect(code).toBe(2)
  expect(err).toContain('unknown option "--postgres"')
  expect(err).not.toContain(server.url)
})

describe('errors of PostgreSQL', () => {
  const errorOf = async (args: readonly string[], url?: string) => {
    const { code, out, err } = await sluice(args, url === undefined ? {} : { url })
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err.trim().split('\n')).toHaveLength(1)
    return err
  }
  const history = ['history', ...TO]

  test('missing tables are reported with the command that creates them', async () => {
    expect(await errorOf([...history, '--schema', 'nowhere'])).toMatch(
      /there is no table "nowhere.sluice_policies": sluice migrate makes/,
    )
  })

  test('a missing schema is reported with the remedy', async () => {
    expect(await errorOf(['migrate', '--yes', '--schema', 'nowhere'])).toMatch(/there is no such schema: create it/)
  })

  test('a denied permission is reported with the remedy', async () => {
    const url = server.urlOf('reader')
    expect(await errorOf(history, url)).toMatch(/permission is denied for sluice_policies: grant it to this user/)
    await server.query('GRANT SELECT ON sluice_policies TO reader')
    expect((await sluice(history, { url })).code).toBe(0)
    const apply = await sluice(['apply', ...TO, file(document(1)), '--yes'], { url })
    expect(apply).toMatchObject({ code: 2, err: expect.stringContaining('permission is denied for sluice_policies') })
  })

  test('a wrong or missing password is reported without showing it', async () => {
    const err = await errorOf(history, server.urlOf('locked:s3cret'))
    expect(err).toMatch(/the password is wrong/)
    expect(err).not.toContain('s3cret')
    expect(await errorOf(history, server.urlOf('locked'))).toMatch(
      /it needs a password, and the connection string has none/,
    )
    expect(await errorOf(history, server.urlOf('locked:right'))).toMatch(/permission is denied for sluice_policies/)
  })

  test('a missing database is reported', async () => {
    expect(await errorOf(history, server.url.replace(/postgres$/, 'lost'))).toMatch(/there is no database "lost"/)
  })

  test('an unreachable PostgreSQL is reported', async () => {
    const url = `postgres://ann:s3cret@127.0.0.1:${await freePort()}/x`
    const err = await errorOf(history, url)
    expect(err).toMatch(/nothing listens there \(ECONNREFUSED\)/)
    expect(err).not.toContain('s3cret')
  })

  test('a server without TLS is reported', async () => {
    expect(await errorOf(history, `${server.url}?sslmode=require`)).toMatch(/it does not support TLS/)
  })
})

test.each([
  ['no URL', ['history', ...TO], '', 'no PostgreSQL is named: set DATABASE_URL'],
  ['a URL of Redis', ['history', ...TO], 'redis://:s3cret@host', 'DATABASE_URL: expected a URL such as postgres://'],
  ['a malformed URL', ['history', ...TO], 'postgres://:s3cret@[/', 'expected a URL such as postgres://'],
  ['an unknown target', ['history', '--to', 'mysql'], '', '--to: expected redis or postgres'],
  ['an option of Redis', ['history', ...TO, '--prefix', 'x'], '', '--prefix: expected none with --to postgres'],
  ['an option of PostgreSQL', ['history', '--schema', 'x'], '', '--schema: expected none with --to redis'],
])('%s is wrong usage', async (_, args, url, message) => {
  const { code, err } = await sluice(args, { url })
  expect(code).toBe(2)
  expect(err).toContain(message)
  expect(err).not.toContain('s3cret')
})
