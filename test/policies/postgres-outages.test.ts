// Release: runs PostgreSQL.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { rateLimit } from '@sluice/express'
import { migratePostgres, type Policies, PostgresDocuments, policies } from '@sluice/policies'
import express from 'express'
import { Client, Pool } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { freePort } from '../../scripts/lib/ports.js'
import { type PostgresServer, startPostgres } from '../support/postgres-server.js'
import { until } from '../support/until.js'

let server: PostgresServer
let pool: Pool
let documents: PostgresDocuments
let loaded: Policies | undefined
const query = (text: string, values?: readonly unknown[]) => pool.query(text, values as unknown[])

beforeAll(async () => {
  server = await startPostgres()
  pool = new Pool({ connectionString: server.url, max: 1 })
  pool.on('error', () => {})
  await query(`CREATE ROLE locked LOGIN PASSWORD 'right'; CREATE ROLE reader LOGIN; CREATE ROLE editor LOGIN`)
  await migratePostgres(query)
  documents = new PostgresDocuments(query)
})
beforeEach(async () => {
  await query('TRUNCATE sluice_policies, sluice_overrides, sluice_removed')
  await query('REVOKE ALL ON sluice_policies, sluice_overrides, sluice_removed FROM reader, editor')
  await documents.save(text(500_000), 0, 'ann')
})
afterEach(async () => {
  await loaded?.close()
  loaded = undefined
})
afterAll(async () => {
  await pool.end()
  await server.stop()
})

const text = (limit: number) =>
  `version: 1\npolicies: { api: { key: user, limits: [{ limit: ${limit}, window: 1m }] } }`
const put = (value: string, limit: number) =>
  query(
    `INSERT INTO sluice_overrides (policy, kind, value, limits) VALUES ('api', 'user', $1, $2)
     ON CONFLICT (name, policy, kind, value) DO UPDATE SET limits = EXCLUDED.limits`,
    [value, JSON.stringify([{ limit }])],
  )

async function from(options: object = {}): Promise<Policies> {
  loaded = await policies.from({
    postgres: { pool, lookupTimeout: 1000, ...options },
    keys: { user: (request) => request.headers['x-user'] },
  })
  return loaded
}

async function limitFor(user: string): Promise<unknown> {
  const context = { request: { headers: { 'x-user': user } }, method: 'GET', path: '/' }
  return (await loaded?.match(context as never))?.options.limits?.[0]?.limit
}

/** Sends requests of some clients, over and over, until `end()` is called. */
async function load(loadedPolicies: Policies) {
  const app = express()
  app.use(rateLimit({ policies: loadedPolicies }))
  app.get('/', (_req, res) => void res.send('ok'))
  const http = createServer(app).listen(0, '127.0.0.1')
  await until('the server listens', () => http.listening)
  const { port } = http.address() as AddressInfo
  const outcomes = new Map<string, number>()
  let isOver = false
  const clients = ['ann', 'bob', 'cid', 'dan'].map(async (user) => {
    while (!isOver) {
      const outcome = await fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-user': user } }).then(
        async (response) => `${response.status} ${await response.text()}`,
        (error) => String(error),
      )
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    }
  })
  return {
    count: () => [...outcomes.values()].reduce((sum, each) => sum + each, 0),
    async end() {
      isOver = true
      await Promise.all(clients)
      http.closeAllConnections()
      http.close()
      return [...outcomes.keys()]
    },
  }
}

test('when PostgreSQL is killed and restarted under load, no request fails, and changes are followed again', async () => {
  await put('ann', 900_000)
  await put('bob', 900_000)
  const requests = await load(await from())
  for (let round = 0; round < 3; round++) {
    await until('the override is known', async () => (await limitFor('ann')) === 900_000 + round)
    const before = requests.count()
    await until('requests are served', () => requests.count() > before + 20)
    server.kill('SIGKILL')
    await until('the outage is noticed', () => loaded?.error)
    const during = requests.count()
    await until('requests are served without it', () => requests.count() > during + 20)
    expect(await limitFor('ann')).toBe(900_000 + round)
    await server.restart()
    await put('ann', 900_001 + round)
    await documents.save(text(500_001 + round), round + 1, 'ann')
    await until('the document is followed', () => loaded?.version === String(round + 2))
    await until('the override is followed', async () => (await limitFor('ann')) === 900_001 + round)
    expect(loaded?.error).toBeUndefined()
  }
  expect(await requests.end()).toEqual(['200 ok'])
})

test('a lost connection is opened again', async () => {
  await put('ann', 5)
  await from()
  await query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%sluice%'`,
  )
  await put('ann', 6)
  await until('the override is followed', async () => (await limitFor('ann')) === 6)
})

/** A pool whose connections count their statements, and fail those that `fails` names. */
function watchedPool(fails: (text: string) => boolean = () => false) {
  const watched = {
    statements: 0,
    underWay: 0,
    mostUnderWay: 0,
    pool: { options: pool.options } as { options: object; Client?: unknown },
  }
  const { Client: Own } = pool as unknown as {
    Client: new (options: object) => { query(text: string): Promise<unknown> }
  }
  watched.pool.Client = class extends Own {
    override async query(text: string, ...values: []): Promise<unknown> {
      watched.statements++
      if (fails(text)) throw new Error('timeout')
      watched.mostUnderWay = Math.max(watched.mostUnderWay, ++watched.underWay)
      return super.query(text, ...values).finally(() => watched.underWay--)
    }
  }
  return watched
}

test('an outage that ends between a look and a load leaves no error behind', async () => {
  let failing = /never/
  const { pool: cut } = watchedPool((text) => failing.test(text))
  await from({ pool: cut, listen: false, pollEvery: 50 })
  failing = /./
  await until('the outage is noticed', () => loaded?.error)
  failing = /document,/
  await sleep(500)
  expect(loaded?.error?.message).toContain('it does not answer in time')
  failing = /never/
  await until('the document can be read again', () => loaded?.error === undefined)
  expect(loaded?.version).toBe('1')
})

test('a document whose versions were all deleted is not looked for again and again', async () => {
  const watched = watchedPool()
  await from({ pool: watched.pool })
  await query('DELETE FROM sluice_policies')
  await until('that is noticed', () => loaded?.error)
  expect(loaded?.error?.message).toContain('PostgreSQL has none so far')
  const before = watched.statements
  await sleep(1000)
  expect(watched.statements - before).toBeLessThan(20)
  await documents.save(text(7), 0, 'ann')
  await until('the next one is in force', async () => (await limitFor('ann')) === 7)
  expect(loaded?.error).toBeUndefined()
})

test('while PostgreSQL hangs, requests wait for lookupTimeout at most, then use known overrides or the document', async () => {
  await put('ann', 5)
  await put('bob', 5)
  await from()
  expect(await limitFor('ann')).toBe(5)
  // The open connection hangs, like all others: the process that serves it waits for a lock of the table.
  const locking = await pool.connect()
  try {
    await locking.query('BEGIN')
    await locking.query('LOCK TABLE sluice_overrides IN ACCESS EXCLUSIVE MODE')
    expect(await limitFor('ann')).toBe(5)
    expect(await limitFor('bob')).toBe(500_000)
    expect(await limitFor('nobody')).toBe(500_000)
  } finally {
    await locking.query('ROLLBACK')
    locking.release()
  }
  await until('the override is found later', async () => (await limitFor('bob')) === 5)
})

test('statements are sent one after the other, as pg deprecates others', async () => {
  await query(
    `INSERT INTO sluice_overrides (policy, kind, value, limits)
     SELECT 'api', 'user', 'u' || i, '[{"limit": 9}]' FROM generate_series(1, 1000) AS i`,
  )
  const watched = watchedPool()
  await from({ pool: watched.pool, lookupTimeout: 10_000 })
  const found = await Promise.all(Array.from({ length: 1000 }, (_, i) => limitFor(`u${i + 1}`)))
  expect(new Set(found)).toEqual(new Set([9]))
  expect(watched.mostUnderWay).toBe(1)
})

test.each([
  ['', '10s'],
  ['-c statement_timeout=3s', '3s'],
  ['-c statement_timeout=1h', '10s'],
])('the server itself ends statements that take too long, with the options %j after %s', async (options, timeout) => {
  const connections: InstanceType<typeof Client>[] = []
  class Watched extends Client {
    constructor(given: object) {
      super(given)
      connections.push(this)
    }
  }
  await from({ pool: { Client: Watched, options: { ...pool.options, options } } })
  // Otherwise, one that waits for a lock stays there when its client has gone, and each attempt adds another one.
  expect((await connections[0]?.query('SHOW statement_timeout'))?.rows).toEqual([{ statement_timeout: timeout }])
})

test('an override that arrives while the process is busy for longer than lookupTimeout is found in time', async () => {
  await put('ann', 5)
  const watched = watchedPool()
  await from({ pool: watched.pool, lookupTimeout: 300 })
  // The first look is over.
  await sleep(200)
  const before = watched.statements
  const found = limitFor('ann')
  while (watched.statements === before) await setImmediate()
  // The reply waits in the socket meanwhile.
  const end = performance.now() + 1000
  while (performance.now() < end);
  expect(await found).toBe(5)
})

test('thousands of concurrent requests whose overrides cannot be looked up neither wait long nor fail', async () => {
  await query(
    `INSERT INTO sluice_overrides (policy, kind, value, limits)
     SELECT 'api', 'user', 'u' || i, '[{"limit": 9}]' FROM generate_series(1, 3000) AS i`,
  )
  await from({ lookupTimeout: 50 })
  const locking = await pool.connect()
  try {
    await locking.query('BEGIN')
    await locking.query('LOCK TABLE sluice_overrides IN ACCESS EXCLUSIVE MODE')
    const found = await Promise.all(Array.from({ length: 3000 }, (_, i) => limitFor(`u${i + 1}`)))
    expect(new Set(found)).toEqual(new Set([500_000]))
  } finally {
    await locking.query('ROLLBACK')
    locking.release()
  }
  await until('the overrides are found later', async () => (await limitFor('u2999')) === 9)
})

test.each([
  [
    'no server there',
    async () => `postgres://127.0.0.1:${await freePort()}/postgres`,
    /nothing listens there \(ECONNREFUSED\)/,
  ],
  [
    'a wrong password',
    async () => server.urlOf('locked:s3cret'),
    /the password is wrong for this user: check the connection string/,
  ],
  [
    'no grant for the document',
    async () => server.urlOf('reader'),
    /permission is denied for sluice_policies: grant it to this user/,
  ],
  [
    'no grant for overrides',
    async () => {
      await query('GRANT SELECT ON sluice_policies TO reader')
      return server.urlOf('reader')
    },
    /permission is denied for sluice_overrides/,
  ],
])('a start with %s fails with one sentence that names the remedy', async (_, urlOf, message) => {
  const other = new Pool({ connectionString: await urlOf() })
  const failed = policies.from({ postgres: other, keys: { user: () => 'ann' } })
  await expect(failed).rejects.toThrow(message)
  const reason = await failed.catch((error) => String(error.message))
  expect(reason).not.toContain('s3cret')
  expect(String(reason).split('\n')).toHaveLength(1)
  await other.end()
})

test('the documented grants suffice to read and to write, and allow nothing else', async () => {
  await query(`GRANT SELECT ON sluice_policies, sluice_overrides, sluice_removed TO reader;
    GRANT SELECT, INSERT, UPDATE, DELETE ON sluice_overrides TO editor`)
  const reading = new Pool({ connectionString: server.urlOf('reader') })
  await from({ pool: reading })
  const writing = new Pool({ connectionString: server.urlOf('editor') })
  const insert = `INSERT INTO sluice_overrides (policy, kind, value, limits, author, version) VALUES ('api', 'user', 'ann', '[{"limit": 5}]', 'eve', 99)`
  await writing.query(insert)
  await until('the override is in force', async () => (await limitFor('ann')) === 5)
  // The author is the user of the connection, whatever is written.
  expect((await query('SELECT author FROM sluice_overrides')).rows).toEqual([{ author: 'editor' }])
  await writing.query('DELETE FROM sluice_overrides')
  await until('the override is removed', async () => (await limitFor('ann')) === 500_000)
  await expect(writing.query('DELETE FROM sluice_removed')).rejects.toThrow('permission denied')
  await expect(reading.query(insert)).rejects.toThrow('permission denied')
  // A trigger of the editor's own table would run with the rights of the owner.
  await query('DROP SCHEMA IF EXISTS eve; CREATE SCHEMA eve; GRANT ALL ON SCHEMA eve TO editor')
  const trigger = 'CREATE TRIGGER t BEFORE INSERT ON eve.t FOR EACH ROW EXECUTE FUNCTION public.sluice_each_override()'
  await expect(writing.query(`CREATE TABLE eve.t (a int); ${trigger}`)).rejects.toThrow(
    'permission denied for function',
  )
  await reading.end()
  await writing.end()
})

test('a server that lost changes, such as one restored from a backup, is read anew', async () => {
  await put('ann', 5)
  await put('bob', 5)
  await from({ listen: false, pollEvery: 50 })
  expect(await limitFor('bob')).toBe(5)
  await query(
    `SET session_replication_role = replica; DELETE FROM sluice_overrides WHERE value = 'bob'; RESET session_replication_role`,
  )
  await until('the table is read anew', async () => (await limitFor('bob')) === 500_000)
  expect(await limitFor('ann')).toBe(5)
})

test('PostgreSQL is polled if it does not notify, as behind a pooler', async () => {
  // A pooler reports another process than the serving one, so a client that does so stands for a pooler.
  const { Client: Own } = pool as unknown as { Client: new (options: object) => object }
  class Pooled extends Own {
    constructor(options: object) {
      super(options)
      Object.defineProperty(this, 'processID', { get: () => 1, set() {} })
    }
  }
  await from({ pool: { Client: Pooled, options: pool.options } })
  await put('ann', 5)
  await until('the override is in force', async () => (await limitFor('ann')) === 5)
  const listening = await query(`SELECT FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`)
  expect(listening.rowCount).toBe(0)
})

test.each([
  ['no pool', 'postgres://host/database', /postgres: expected a Pool of pg/],
  ['an unknown option', { pool: {}, pollMs: 50 }, /postgres: pollMs: unknown option: use pollEvery/],
  [
    'a pause below the minimum',
    { pool: {}, pollEvery: 1 },
    /postgres: pollEvery: expected a duration from 50 to 60000 ms/,
  ],
  [
    'an invalid timeout',
    { pool: {}, lookupTimeout: 'soon' },
    /postgres: lookupTimeout: expected whole milliseconds or a duration/,
  ],
  ['a schema without a name', { pool: {}, schema: '' }, /postgres: schema: expected the name of a schema/],
])('policies.from rejects the postgres option with %s', async (_, postgres, message) => {
  await expect(policies.from({ postgres })).rejects.toThrow(message)
})
