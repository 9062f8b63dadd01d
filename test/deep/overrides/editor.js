// A process that reads the policies in Redis or PostgreSQL, and sets overrides: see overrides.test.ts.
import { memoryStore } from '@sluice/core'
import { policies } from '@sluice/policies'
import { Redis } from 'ioredis'
import pg from 'pg'

const { REDIS_URL, DATABASE_URL } = process.env
const connection = REDIS_URL ? new Redis(REDIS_URL) : new pg.Pool({ connectionString: DATABASE_URL })
const source = REDIS_URL ? { redis: connection } : { postgres: { pool: connection, lookupTimeout: 10_000 } }
const loaded = await policies.from({
  ...source,
  save: connection,
  allowShrink: true,
  keys: { user: (request) => request.user },
  tiers: { plan: (request) => request.tier },
})
const { changes } = memoryStore()

const calls = {
  version: async () => loaded.version,
  number: async (client) => (await loaded.match(contextOf(client))).options.limits[0].limit,
  set: (override) => loaded.overrides.set(override, { by: 'other', changes }),
  remove: (override) => loaded.overrides.remove(override, { by: 'other', changes }),
}

process.on('message', async ({ call, argument }) => {
  try {
    process.send({ result: await calls[call](argument) })
  } catch (error) {
    process.send({ error: error.constructor.name })
  }
})
process.on('disconnect', () => process.exit())
process.send('ready')

function contextOf(client) {
  return {
    request: client,
    method: 'GET',
    path: '/',
    target: '/',
    ip: client.ip,
    response: { on() {}, removeListener() {} },
    header: () => undefined,
    signedCookie: () => undefined,
    getResponseHeader: () => undefined,
  }
}
