// Release: runs PostgreSQL.
import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { migratePostgres, PostgresDocuments } from '@sluice/policies'
import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensureBuilt } from '../../support/built-core.js'
import { type PostgresServer, startPostgres } from '../../support/postgres-server.js'
import { until } from '../../support/until.js'

const PROCESSES = 4
const document = (limit: number) => `version: 1\npolicies: { api: { limits: [{ limit: ${limit}, window: 1m }] } }`

let server: PostgresServer
let pool: Pool
let documents: PostgresDocuments
let workers: ChildProcess[] = []
beforeAll(async () => {
  ensureBuilt('core', 'policies')
  server = await startPostgres()
  pool = new Pool({ connectionString: server.url })
  pool.on('error', () => {})
  const query = (text: string, values?: readonly unknown[]) => pool.query(text, values as unknown[])
  await migratePostgres(query)
  documents = new PostgresDocuments(query)
  await documents.save(document(1), 0, 'ann')
  const env = { ...process.env, DATABASE_URL: server.url }
  const file = fileURLToPath(new URL('follower.js', import.meta.url))
  workers = Array.from({ length: PROCESSES }, () => fork(file, { env, execArgv: [] }))
  await Promise.all(workers.map((worker) => once(worker, 'message')))
})
afterAll(async () => {
  for (const worker of workers) worker.disconnect()
  await pool.end()
  await server.stop()
})

async function limits(user: string): Promise<number[]> {
  return Promise.all(
    workers.map(async (worker) => {
      worker.send(user)
      const [limit] = (await once(worker, 'message')) as [number]
      return limit
    }),
  )
}

const put = (limit: number) =>
  pool.query(
    `INSERT INTO sluice_overrides (policy, kind, value, limits) VALUES ('api', 'user', 'ann', $1)
     ON CONFLICT (name, policy, kind, value) DO UPDATE SET limits = EXCLUDED.limits`,
    [JSON.stringify([{ limit }])],
  )

const all = (limit: number) => Array.from({ length: PROCESSES }, () => limit)
const haveAll = (user: string, limit: number) =>
  until(`all processes have ${limit}`, async () => (await limits(user)).every((each) => each === limit))

test('an override inserted, changed and deleted is so in every process', async () => {
  expect(await limits('ann')).toEqual(all(1))
  for (const limit of [5, 6, 7]) {
    await put(limit)
    await haveAll('ann', limit)
    expect(await limits('bob')).toEqual(all(1))
  }
  await pool.query('DELETE FROM sluice_overrides')
  await haveAll('ann', 1)
})

test('a saved document comes into force in every process, also after PostgreSQL was killed', async () => {
  await documents.save(document(2), 1, 'ann')
  await haveAll('bob', 2)
  await put(8)
  await haveAll('ann', 8)
  server.kill('SIGKILL')
  expect(await limits('ann')).toEqual(all(8))
  expect(await limits('bob')).toEqual(all(2))
  await server.restart()
  await documents.save(document(3), 2, 'ann')
  await put(9)
  await haveAll('bob', 3)
  await haveAll('ann', 9)
})

test('following PostgreSQL does not keep a process alive', () => {
  const file = fileURLToPath(new URL('follower.js', import.meta.url))
  const env = { ...process.env, DATABASE_URL: server.url, NODE_CHANNEL_FD: undefined }
  const { status, signal, stderr } = spawnSync(process.execPath, [file], { env, encoding: 'utf8', timeout: 120_000 })
  expect({ status, signal, stderr }).toEqual({ status: 0, signal: null, stderr: '' })
})
