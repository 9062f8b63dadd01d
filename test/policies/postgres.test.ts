// Release: runs PostgreSQL.
import type { HttpContext, MatchedPolicies } from '@sluice/core'
import { migratePostgres, type Policies, PostgresDocuments, policies, VersionConflict } from '@sluice/policies'
import fc from 'fast-check'
import { Pool, Client as pgClient } from 'pg'
import { Pool as Pool811 } from 'pg811'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../support/postgres-server.js'
import { warningsDuring } from '../support/process-events.js'
import { until } from '../support/until.js'

interface Client {
  readonly user?: string
  readonly ip?: string
  readonly apiKey?: string
}

let server: PostgresServer
let pool: Pool
const query = (text: string, values?: readonly unknown[]) => pool.query(text, values as unknown[])
const opened: Policies[] = []

beforeAll(async () => {
  server = await startPostgres()
  pool = new Pool({ connectionString: server.url, max: 2 })
  await migratePostgres(query)
})
afterAll(async () => {
  await pool.end()
  await server.stop()
})
beforeEach(async () => {
  await query('TRUNCATE sluice_policies, sluice_overrides, sluice_removed')
})
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close()
})

const documents = (name = 'default') => new PostgresDocuments(query, name)
const text = (limit: number, more = '') =>
  `version: 1\npolicies: { api: { limits: [{ limit: ${limit}, window: 1m }] } }\n${more}`
const save = (limit = 1, more = '') => documents().save(text(limit, more), 0, 'ann')

async function from(options: object = {}, more: object = {}): Promise<Policies> {
  const loaded = await policies.from({
    postgres: { pool, lookupTimeout: 10_000, ...options },
    keys: { user: (request: Client) => request.user },
    ...more,
  })
  opened.push(loaded)
  return loaded
}

function contextOf(client: Client): HttpContext<Client> {
  return {
    request: client,
    method: 'GET',
    path: '/',
    target: '/',
    ip: client.ip,
    route: undefined,
    response: { on() {}, removeListener() {} },
    header: (name) => (name === 'x-api-key' ? client.apiKey : undefined),
    signedCookie: () => undefined,
    getResponseHeader: () => undefined,
  }
}

async function limitFor(loaded: Policies, client: Client): Promise<unknown> {
  const matched = (await loaded.match(contextOf(client))) as MatchedPolicies<Client>
  return matched.options.limits?.[0]?.limit
}

const put = (value: string, limit: number, kind = 'user', policy = 'api') =>
  query(
    `INSERT INTO sluice_overrides (policy, kind, value, limits) VALUES ($1, $2, $3, $4)
     ON CONFLICT (name, policy, kind, value) DO UPDATE SET limits = EXCLUDED.limits`,
    [policy, kind, value, JSON.stringify([{ limit }])],
  )

describe('documents in PostgreSQL', () => {
  test('a saved document and the next version come into force in every process', async () => {
    await save(1)
    const older = new Pool811({ connectionString: server.url })
    const both = [await from(), await from({ pool: older }), await from({ listen: false, pollEvery: 50 })]
    await documents().save(text(2), 1, 'bob')
    for (const loaded of both) {
      await until('the process has it', () => loaded.version === '2')
      expect(await limitFor(loaded, {})).toBe(2)
    }
    await older.end()
  })

  test('a first version with another text comes into force after all versions were deleted', async () => {
    await save(1)
    const [watching, other] = [
      await from({ listen: false, pollEvery: 50 }),
      await from({ listen: false, pollEvery: '1m' }),
    ]
    await query('DELETE FROM sluice_policies')
    await save(2)
    await other.reload()
    expect(await limitFor(other, {})).toBe(2)
    await until('the process that watches has it', async () => (await limitFor(watching, {})) === 2)
  })

  test('policies.from accepts a pool alone', async () => {
    await save(3)
    const loaded = await policies.from({ postgres: pool })
    opened.push(loaded)
    expect(await limitFor(loaded, {})).toBe(3)
  })

  test('the second of two editors of one version is rejected, and changes nothing', async () => {
    await save(1)
    const both = await Promise.allSettled([documents().save(text(2), 1, 'ann'), documents().save(text(3), 1, 'bob')])
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const refused = both.find((result) => result.status === 'rejected')
    expect(refused?.reason).toBeInstanceOf(VersionConflict)
    expect(await documents().version()).toBe(2)
  })

  test('the last twenty versions are listed with author and time, each name separately', async () => {
    for (let n = 0; n < 22; n++) await documents().save(text(n), n, `ann-${n}`)
    const history = await documents().history()
    expect(history.map(({ version }) => version)).toEqual(Array.from({ length: 20 }, (_, i) => 22 - i))
    expect(history[0]).toMatchObject({ by: 'ann-21', text: text(21) })
    expect(Math.abs((history[0]?.at ?? 0) - Date.now())).toBeLessThan(600_000)
    expect(await documents('other').newest()).toBeUndefined()
  })

  test('an invalid version leaves the last one in force', async () => {
    await save(1)
    const loaded = await from()
    await documents().save('version: 1\npolicies: { api: {} }', 1, 'ann')
    await until('the version is read', () => loaded.error)
    expect(loaded.error?.message).toMatch(/postgres:default:2:13: policies.api: expected limits/)
    expect(await limitFor(loaded, {})).toBe(1)
    await documents().save(text(4), 2, 'ann')
    await until('the next is in force', () => loaded.version === '3')
    expect(loaded.error).toBeUndefined()
  })

  test('a saved version never changes, and cannot contain NUL', async () => {
    await save(1)
    await expect(query(`UPDATE sluice_policies SET document = 'x'`)).rejects.toThrow('a version never changes')
    await expect(documents().save('a\0b', 1, 'ann')).rejects.toThrow('without NUL')
    await expect(documents().save('\ud800', 1, 'ann')).rejects.toThrow('halves of characters')
  })

  test('a fallback is in force while PostgreSQL has no document', async () => {
    await expect(from()).rejects.toThrow(/PostgreSQL has none so far: sluice apply --to postgres saves one/)
    const loaded = await from({}, { fallback: text(7) })
    expect(await limitFor(loaded, {})).toBe(7)
    await save(8)
    await until('the document is in force', async () => (await limitFor(loaded, {})) === 8)
  })
})

describe('overrides in PostgreSQL', () => {
  test('an override in the table applies to its client only, from its insertion until its deletion', async () => {
    await save(1)
    const loaded = await from()
    expect(await limitFor(loaded, { user: '42' })).toBe(1)
    await put('42', 9)
    await until('the override is in force', async () => (await limitFor(loaded, { user: '42' })) === 9)
    expect(await limitFor(loaded, { user: '421' })).toBe(1)
    expect(await limitFor(loaded, {})).toBe(1)
    await put('42', 10)
    await until('the change is in force', async () => (await limitFor(loaded, { user: '42' })) === 10)
    await query(`UPDATE sluice_overrides SET value = '43'`)
    await until('the override is for another client', async () => (await limitFor(loaded, { user: '43' })) === 10)
    expect(await limitFor(loaded, { user: '42' })).toBe(1)
    await query('DELETE FROM sluice_overrides')
    await until('the override is removed', async () => (await limitFor(loaded, { user: '43' })) === 1)
    await put('44', 5)
    await until('the override is in force', async () => (await limitFor(loaded, { user: '44' })) === 5)
    await query('TRUNCATE sluice_overrides')
    await until('all overrides are removed', async () => (await limitFor(loaded, { user: '44' })) === 1)
  })

  test('an override inserted before the start applies to the first request', async () => {
    await save(1)
    await put('ann', 9)
    expect(await limitFor(await from(), { user: 'ann' })).toBe(9)
  })

  test('an override of an address matches its every spelling, and ranges are rejected', async () => {
    await save(1)
    await put('::ffff:192.0.2.7', 9, 'ip')
    await put('64:ff9b::192.0.2.8', 7, 'ip')
    await put('2001:DB8:0::1', 8, 'ip')
    const loaded = await from()
    expect(await limitFor(loaded, { ip: '192.0.2.7' })).toBe(9)
    expect(await limitFor(loaded, { ip: '::ffff:c000:207' })).toBe(9)
    expect(await limitFor(loaded, { ip: '192.0.2.8' })).toBe(7)
    expect(await limitFor(loaded, { ip: '64:ff9b::c000:207' })).toBe(9)
    expect(await limitFor(loaded, { ip: '2001:db8::1' })).toBe(8)
    expect(await limitFor(loaded, { ip: '2001:db8::2' })).toBe(1)
    expect((await query('SELECT value FROM sluice_overrides ORDER BY 1')).rows).toEqual([
      { value: '192.0.2.7' },
      { value: '192.0.2.8' },
      { value: '2001:db8::1' },
    ])
    await expect(put('192.0.2.0/24', 9, 'ip')).rejects.toThrow('ranges stay in the document')
    await expect(put('house', 9, 'ip')).rejects.toThrow()
  })

  test('an override of a secret contains its hash, and other values are rejected', async () => {
    await save(1)
    // printf %s s3cret | sha256sum
    await put('sha256:1ec1c26b50d5d3c58d9583181af8076655fe00756bf7285940ba3670f99fcba0', 9, 'header:X-Api-Key')
    const loaded = await from()
    expect(await limitFor(loaded, { apiKey: 's3cret' })).toBe(9)
    expect(await limitFor(loaded, { apiKey: 'other' })).toBe(1)
    for (const kind of ['header:x-api-key', 'cookie:sid', 'credentials']) {
      await expect(put('s3cret', 9, kind)).rejects.toThrow('expected sha256: and 64 hexadecimal digits')
    }
  })

  test('an override in the table ranks behind exact ones of the document, and before ranges, prefixes and tiers', async () => {
    const data = {
      version: 1,
      policies: {
        api: { tier: 'plan', tiers: { free: [{ limit: 1, window: '1m' }], gold: [{ limit: 2, window: '1m' }] } },
      },
      overrides: [
        { policy: 'api', prefix: { user: 'v' }, limits: [{ limit: 3 }] },
        { policy: 'api', range: '192.0.2.0/24', limits: [{ limit: 5 }] },
        { policy: 'api', key: { ip: '192.0.2.65' }, limits: [{ limit: 7 }] },
        { policy: 'api', key: { user: 'vip-1' }, limits: [{ limit: 8 }] },
      ],
    }
    await documents().save(JSON.stringify(data), 0, 'ann')
    for (const [value, limit, kind] of [
      ['vip-1', 80, 'user'],
      ['vip-2', 90, 'user'],
      ['192.0.2.65', 70, 'ip'],
      ['192.0.2.66', 60, 'ip'],
    ] as const) {
      await put(value, limit, kind)
    }
    const tiers = { plan: (request: Client) => (request.user?.startsWith('vip') ? 'gold' : 'free') }
    const loaded = await from({}, { tiers })
    expect(await limitFor(loaded, { user: 'ann' })).toBe(1)
    expect(await limitFor(loaded, { user: 'vip-3' })).toBe(3)
    expect(await limitFor(loaded, { user: 'vip-2' })).toBe(90)
    expect(await limitFor(loaded, { user: 'vip-1' })).toBe(8)
    expect(await limitFor(loaded, { ip: '192.0.2.65' })).toBe(7)
    expect(await limitFor(loaded, { ip: '192.0.2.66' })).toBe(60)
    expect(await limitFor(loaded, { ip: '192.0.2.67' })).toBe(5)
    expect(await limitFor(loaded, { user: 'vip-2', ip: '192.0.2.65' })).toBe(90)
    const [explained] = await loaded.explain({ path: '/', request: { user: 'vip-2' } })
    expect(explained).toMatchObject({ tier: 'gold', override: 'sluice_overrides', limits: [{ limit: 90 }] })
  })

  test('an override in the table ends at its time', async () => {
    await save(1)
    await put('ann', 9)
    await put('bob', 9)
    await query(
      `UPDATE sluice_overrides SET until = CASE value WHEN 'ann' THEN now() - interval '1 s' ELSE 'infinity' END`,
    )
    const loaded = await from()
    expect(await limitFor(loaded, { user: 'ann' })).toBe(1)
    expect(await limitFor(loaded, { user: 'bob' })).toBe(9)
  })

  test('an ended override hides none of the document, nor an ended one of the document any in the table', async () => {
    const data = {
      version: 1,
      policies: { api: { limits: [{ limit: 1, window: '1m' }] } },
      overrides: [
        { policy: 'api', range: '192.0.2.0/24', limits: [{ limit: 5 }] },
        { policy: 'api', range: '192.0.2.64/26', limits: [{ limit: 6 }], until: '2020-01-01T00:00:00Z' },
        { policy: 'api', key: { user: 'bob' }, limits: [{ limit: 7 }], until: '2020-01-01T00:00:00Z' },
        { policy: 'api', prefix: { user: 'a' }, limits: [{ limit: 8 }] },
        { policy: 'api', prefix: { user: 'an' }, limits: [{ limit: 9 }], until: '2020-01-01T00:00:00Z' },
      ],
    }
    await documents().save(JSON.stringify(data), 0, 'ann')
    await put('192.0.2.65', 70, 'ip')
    await put('ann', 80)
    await query(`UPDATE sluice_overrides SET until = now() - interval '1 s'`)
    await put('bob', 90)
    const loaded = await from()
    expect(await limitFor(loaded, { ip: '192.0.2.65' })).toBe(5)
    expect(await limitFor(loaded, { user: 'ann' })).toBe(8)
    expect(await limitFor(loaded, { user: 'bob' })).toBe(90)
    const [explained] = await loaded.explain({ path: '/', ip: '192.0.2.65', request: {} })
    expect(explained).toMatchObject({ override: 0, limits: [{ limit: 5 }] })
  })

  test('an override belongs to the document of its name', async () => {
    await save(1)
    await put('ann', 9)
    await documents('other').save(text(2), 0, 'ann')
    expect(await limitFor(await from({}, { name: 'other' }), { user: 'ann' })).toBe(2)
  })

  test('with overrides: false the table is not read', async () => {
    await save(1)
    await put('ann', 9)
    expect(await limitFor(await from({ overrides: false }), { user: 'ann' })).toBe(1)
  })

  test('PostgreSQL and the process compute the same hash for any client', async () => {
    await save(1)
    const users = fc.sample(fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }), 300)
    // Addresses such as ::1.2.3.4 belong to no network, and are parsed in several ways.
    const addresses = fc.sample(fc.oneof(fc.ipV4(), fc.ipV6()), 300).filter((address) => !/^::[\d.]+$/.test(address))
    const values = [
      ...users.filter((value) => !value.includes('\0')).map((value) => ['user', value]),
      ...[...addresses, '::', '::1', '::102:304', '1:0:0:2:0:0:0:3', '64:ff9b::192.0.2.1'].map((value) => [
        'ip',
        value,
      ]),
    ] as const
    await query(
      `INSERT INTO sluice_overrides (policy, kind, value, limits)
       SELECT 'api', kind, value, '[{"limit": 9}]' FROM unnest($1::text[], $2::text[]) AS t(kind, value) ON CONFLICT DO NOTHING`,
      [values.map(([kind]) => kind), values.map(([, value]) => value)],
    )
    const loaded = await from()
    const found = await Promise.all(
      values.map(async ([kind, value]) => [kind, value, await limitFor(loaded, { [kind as string]: value })]),
    )
    expect(found.filter(([, , limit]) => limit !== 9)).toEqual([])
  })

  test('a client without override costs no statement, and many requests of one with override cost one', async () => {
    await save(1)
    await put('ann', 9)
    await put('192.0.2.7', 9, 'ip')
    let statements = 0
    class Counting extends pgClient {
      override query(text: never, ...values: never[]) {
        if (String(text).includes('hash = ANY')) statements++
        return super.query(text, ...values) as never
      }
    }
    const loaded = await from({ pool: { Client: Counting, options: pool.options } })
    for (let i = 0; i < 2000; i++) {
      expect(await limitFor(loaded, { user: `made-up-${i}`, ip: `198.51.100.${i % 256}` })).toBe(1)
    }
    expect(statements).toBe(0)
    const limits = await Promise.all(Array.from({ length: 500 }, () => limitFor(loaded, { user: 'ann' })))
    expect(new Set(limits)).toEqual(new Set([9]))
    expect(statements).toBe(1)
    expect(await limitFor(loaded, { user: 'ann' })).toBe(9)
    expect(statements).toBe(1)
  })

  test('each of many overrides is found, in batches, and equal ones share one limiter', async () => {
    await save(1)
    await query(
      `INSERT INTO sluice_overrides (policy, kind, value, limits)
       SELECT 'api', 'user', 'u' || i, '[{"limit": 9}]' FROM generate_series(1, 25000) AS i`,
    )
    const loaded = await from({ maxOverrides: 100 })
    const matched = await Promise.all(
      Array.from({ length: 1000 }, (_, i) => loaded.match(contextOf({ user: `u${25 * i + 1}` }))),
    )
    expect(new Set(matched).size).toBe(1)
    expect((matched[0] as MatchedPolicies<Client>).options.limits?.[0]?.limit).toBe(9)
    expect(await limitFor(loaded, { user: 'u25001' })).toBe(1)
    await query(`DELETE FROM sluice_overrides WHERE value <> 'u7'`)
    await until('the others are removed', async () => (await limitFor(loaded, { user: 'u8' })) === 1)
    expect(await limitFor(loaded, { user: 'u7' })).toBe(9)
  })
})

describe('hostile rows', () => {
  test.each([
    ['invalid limits', '["x"]'],
    ['a limit below zero', '[{"limit": -1}]'],
    ['unknown fields', '[{"limt": 5}]'],
    ['a limit of another name', '[{"name": "day", "limit": 5}]'],
    ['a prototype', '[{"__proto__": {"limit": 5}}]'],
    ['no limits', '[]'],
  ])(
    'an override changed to %s keeps its last valid version where that is known, else the document decides',
    async (_, wrong) => {
      await save(1)
      await put('ann', 9)
      await put('bob', 9)
      const loaded = await from()
      expect(await limitFor(loaded, { user: 'ann' })).toBe(9)
      await query('UPDATE sluice_overrides SET limits = $1', [wrong])
      // Follows the changed rows.
      await put('cid', 5)
      await until('the row is read', async () => (await limitFor(loaded, { user: 'cid' })) === 5)
      expect(await limitFor(loaded, { user: 'ann' })).toBe(9)
      expect(await limitFor(loaded, { user: 'ann' })).toBe(9)
      expect(await limitFor(loaded, { user: 'bob' })).toBe(1)
      await put('ann', 10)
      await until('the override is valid again', async () => (await limitFor(loaded, { user: 'ann' })) === 10)
    },
  )

  test('a warning names the version and the kind of each wrong override, and no client', async () => {
    await save(1)
    await put('ann', 9)
    await put('bob', 9)
    await query(`UPDATE sluice_overrides SET limits = '[{"limit": -1}]'`)
    const loaded = await from()
    const warnings = await warningsDuring(async () => {
      for (const user of ['ann', 'bob', 'ann']) expect(await limitFor(loaded, { user })).toBe(1)
    })
    const { rows } = await query('SELECT version FROM sluice_overrides ORDER BY value')
    expect(warnings.flatMap(({ message }) => /policy .*version.* limits/.exec(message) ?? [])).toEqual(
      rows.map(({ version }) => `policy "api": kind "user": version ${version}: limits`),
    )
    expect(String(warnings)).not.toMatch(/ann|bob/)
  })

  test('overrides of unregistered kinds and unknown policies have no effect', async () => {
    await save(1)
    await put('ann', 9, 'nobody')
    await put('ann', 9, 'user', 'elsewhere')
    await put('constructor', 8)
    const loaded = await from()
    expect(await limitFor(loaded, { user: 'ann' })).toBe(1)
    expect(await limitFor(loaded, { user: 'constructor' })).toBe(8)
    expect(await limitFor(loaded, { user: '__proto__' })).toBe(1)
    expect(await limitFor(loaded, { user: "'; DROP TABLE sluice_overrides; --" })).toBe(1)
    expect(await limitFor(loaded, { user: 'x'.repeat(1_000_000) })).toBe(1)
    expect(await limitFor(loaded, { user: '\0\ud800' })).toBe(1)
  })

  test.each([
    ['policy', ['a b', 'user', 'x', '[]']],
    ['kind', ['api', 'us er', 'x', '[]']],
    ['empty value', ['api', 'user', '', '[]']],
    ['value of more than a kilobyte', ['api', 'user', 'x'.repeat(1025), '[]']],
    ['form of limits', ['api', 'user', 'x', '{}']],
  ])('the table rejects a row with an invalid %s', async (_, values) => {
    const text = 'INSERT INTO sluice_overrides (policy, kind, value, limits) VALUES ($1, $2, $3, $4)'
    await expect(query(text, values)).rejects.toThrow(/violates check constraint/)
  })
})
