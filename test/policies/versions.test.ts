// Release: runs PostgreSQL.
import { memoryStore } from '@sluice/core'
import { policies, VersionConflict } from '@sluice/policies'
import { Redis } from 'ioredis'
import { Pool } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { until } from '../support/until.js'
import { startPlaces } from './places.js'

const { redis, client, postgres, pool, documents } = await startPlaces()
beforeAll(async () => {
  // As the pages of the documentation say.
  await pool.query(`CREATE ROLE reader LOGIN; CREATE ROLE writer LOGIN;
    GRANT SELECT ON sluice_policies, sluice_overrides, sluice_removed TO reader;
    GRANT SELECT, INSERT ON sluice_policies TO writer`)
  const user = async (name: string, ...commands: string[]) =>
    client.call('ACL', 'SETUSER', name, 'reset', 'on', '>secret', '~sluice:policies:*', ...commands)
  await user('reader', '+get', '+lindex', '+hmget', '+hscan', '+lrange')
  await user('writer', '+eval', '+lindex', '+lrange', '+time', '+lpush', '+ltrim', '+set')
})

const open = closedAfterEach()

function redisOf(username: string): Redis {
  const made = new Redis(redis.port, { username, password: 'secret', enableReadyCheck: false })
  made.on('error', () => {})
  open.push(() => made.disconnect())
  return made
}

function poolOf(user: string): Pool {
  const made = new Pool({ connectionString: postgres.urlOf(user), max: 2 })
  open.push(() => made.end())
  return made
}

const PLACES = {
  redis: {
    source: () => ({ redis: redisOf('reader') }),
    save: () => redisOf('writer') as unknown,
  },
  postgres: {
    source: () => ({ postgres: { pool: poolOf('reader') } }),
    save: () => poolOf('writer') as unknown,
  },
}

const textOf = (limit: number) => `version: 1\npolicies: { api: { limits: [{ limit: ${limit}, window: 1m }] } }\n`

describe.each(['redis', 'postgres'] as const)('versions of a document in %s', (kind) => {
  const { source, save } = PLACES[kind]

  test('an earlier one is put in force with the documented grants, and with an entry', async () => {
    for (const [at, limit] of [5, 50].entries()) await documents[kind]().save(textOf(limit), at, `author-${at + 1}`)
    const from = async (more: object) => {
      const loaded = await policies.from({ ...source(), ...more })
      open.push(() => loaded.close())
      return loaded
    }
    const [here, there] = [await from({ save: save() }), await from({})]
    const { changes } = memoryStore()
    const by = { by: 'ann', changes }
    for (const { versions } of [here, there]) {
      expect(await versions?.list()).toMatchObject([
        { version: 2, by: 'author-2', differences: ['~ policy api', '  - limit: 5', '  + limit: 50'] },
        { version: 1, by: 'author-1' },
      ])
      expect(await versions?.plan(1)).toMatchObject({ version: 1, expected: 2, canSave: versions?.canSave })
      expect(await versions?.plan(7)).toBeUndefined()
    }
    await expect(there.versions?.rollback({ version: 1, expected: 2 }, by)).rejects.toThrow(/pass one as `save`/)
    const both = await Promise.allSettled(
      [by, by].map((each) => here.versions?.rollback({ version: 1, expected: 2 }, each)),
    )
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const refused = both.find((each) => each.status === 'rejected')?.reason
    expect(refused).toBeInstanceOf(VersionConflict)
    expect(refused.found).toEqual({ version: 3 })
    expect(here.version).toBe('3')
    await until('the other process has it', () => there.version === '3')
    expect(await documents[kind]().newest()).toMatchObject({ version: 3, text: textOf(5), by: 'ann' })
    const { entries } = await changes.list()
    expect(entries.filter(({ state }) => state === 'done')).toMatchObject([
      { by: 'ann', action: 'rollback', before: { document: 'default', version: 2 }, after: { version: 3, sameAs: 1 } },
    ])
    await expect(here.versions?.rollback({ version: 1 } as never, by)).rejects.toThrow(/expected: expected a whole/)
  })
})

test('files, objects and functions have none', async () => {
  const loaded = await policies.from({ load: () => textOf(5) })
  expect(loaded.versions).toBeUndefined()
  await loaded.close()
})
