import { migratePostgres, PostgresDocuments, RedisDocuments } from '@sluice/policies'
import { Redis } from 'ioredis'
import { Pool } from 'pg'
import { afterAll } from 'vitest'
import { startPostgres } from '../support/postgres-server.js'
import { startRedis } from '../support/redis-server.js'

/** Where policies are saved: a Redis and a PostgreSQL with its tables, until the tests of the file are done. */
export async function startPlaces() {
  const [redis, postgres] = await Promise.all([startRedis(), startPostgres()])
  const client = new Redis(redis.url)
  const pool = new Pool({ connectionString: postgres.url, max: 4 })
  const query = (text: string, values?: readonly unknown[]) => pool.query(text, values as unknown[])
  await migratePostgres(query)
  afterAll(async () => {
    client.disconnect()
    await pool.end()
    await Promise.all([redis.stop(), postgres.stop()])
  })
  const documents = {
    redis: () => new RedisDocuments((command, ...args) => client.call(command, ...args), 'default', 'sluice:'),
    postgres: () => new PostgresDocuments(query),
  }
  return { redis, client, postgres, pool, documents }
}
