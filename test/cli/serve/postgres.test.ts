// Release: runs PostgreSQL.
import { run } from '@sluice/cli'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../support/postgres-server.js'
import { until } from '../../support/until.js'
import { ask, decide, documentOf, endWithTests, fileOf, gateway, refused, serving } from './support.js'

endWithTests()

let server: PostgresServer
let env: { DATABASE_URL: string }

beforeAll(async () => {
  server = await startPostgres()
  env = { DATABASE_URL: server.url }
  await sluice('migrate', '--yes')
})
afterAll(() => server.stop())
beforeEach(async () => {
  await server.query('TRUNCATE sluice_policies, sluice_overrides, sluice_removed')
})

async function sluice(...args: string[]): Promise<void> {
  let printed = ''
  const output = { write: (text: string) => (printed += text) }
  const code = await run(args, { env, stdout: output, stderr: output, version: '0' })
  expect([code, printed]).toEqual([0, printed])
}

const limitOf = (limit: number) => documentOf(`all: { limits: [{ limit: ${limit}, window: 1m }] }`)
const apply = (text: string, ...more: string[]) =>
  sluice('apply', '--to', 'postgres', fileOf(text), '--yes', '--by', 'ann', ...more)
const SERVED = ['--document', 'postgres:', '--dialect', 'json', '--listen', '127.0.0.1:0']
const ANN = { path: '/', ip: '192.0.2.7', cost: 0 }

test('a document applied to PostgreSQL is served, with its next version and overrides of the table', async () => {
  await apply(limitOf(1))
  const decider = await serving(SERVED, env)
  const limit = async () => (await decide(decider, ANN)).json.limits[0].limit
  expect(await limit()).toBe(1)
  await apply(limitOf(5))
  await until('the change is in force', async () => (await limit()) === 5)
  await server.query(`INSERT INTO sluice_overrides (policy, kind, value, limits)
    VALUES ('all', 'ip', '192.0.2.7', '[{"limit":7}]')`)
  await until('the override is in force', async () => (await limit()) === 7)
  expect((await ask(decider, { path: '/readyz' })).json.document).toEqual({ version: '2', current: true })
})

test('a name, schema and file with the URL work as in other commands', async () => {
  await server.query('CREATE SCHEMA limits')
  await sluice('migrate', '--yes', '--schema', 'limits')
  await apply(limitOf(3), '--schema', 'limits', '--name', 'edge')
  const url = fileOf(`${server.url}\n`, 'url')
  const decider = await serving(
    ['--document', 'postgres:edge', '--schema', 'limits', '--postgres-file', url, ...SERVED.slice(2)],
    {},
  )
  expect((await decide(decider, ANN)).json.limits[0].limit).toBe(3)
})

test('a document that a decider cannot use is rejected, and an override of that kind has no effect', async () => {
  await apply(documentOf('all: { count: { only: failure }, limits: [{ limit: 1, window: 1m }] }'))
  expect(await refused(SERVED, env)).toMatchObject({ code: 1, stderr: expect.stringContaining('policies.all.count') })
  await apply(limitOf(1))
  await server.query(`INSERT INTO sluice_overrides (policy, kind, value, limits)
    VALUES ('all', 'ip', '192.0.2.7', '[{"algorithm":"concurrency","limit":7}]')`)
  const warnings: string[] = []
  const listener = ({ message }: Error) => warnings.push(message)
  process.on('warning', listener)
  try {
    const decider = await serving(SERVED, env)
    expect((await decide(decider, { ...ANN, cost: 1 })).json.allowed).toBe(true)
    expect((await decide(decider, { ...ANN, cost: 1 })).json.status).toBe(429)
    await until('the warning is emitted', () =>
      warnings.some((text) => text.includes('a decider does not see when a request is done')),
    )
  } finally {
    process.removeListener('warning', listener)
  }
})

test.each<[string, string[], Record<string, string>, number, string]>([
  ['no PostgreSQL', SERVED, {}, 2, 'no PostgreSQL is named: set DATABASE_URL, or pass --postgres-file'],
  [
    'another URL',
    SERVED,
    { DATABASE_URL: 'mysql://ann:secret@host/db' },
    2,
    'DATABASE_URL: expected a URL such as postgres:',
  ],
  [
    'a malformed URL',
    SERVED,
    { DATABASE_URL: 'postgres://ann:secret@host:port/db' },
    2,
    'expected a URL such as postgres:',
  ],
  [
    'a schema for a file',
    gateway('nginx', limitOf(1), '--schema', 'limits'),
    {},
    2,
    '--schema: expected none without --document postgres:NAME',
  ],
])('serve rejects %s', async (_, args, given, expected, sentence) => {
  const { code, stderr } = await refused(args, given)
  expect([code, stderr]).toEqual([expected, expect.stringContaining(sentence)])
  expect(stderr).not.toContain('secret')
})

test('serve reports that PostgreSQL has no document', async () => {
  const { code, stderr } = await refused(SERVED, env)
  expect([code, stderr]).toEqual([1, expect.stringContaining('PostgreSQL has none so far: sluice apply --to postgres')])
})
