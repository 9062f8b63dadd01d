import { concurrency, memoryStore, redisStore } from '@sluice/core'
import { Redis } from 'ioredis'
import request from 'supertest'
import { afterEach, expect, test } from 'vitest'
import { type AnyOptions, type RunningApp, run } from '../../http/support/app.js'
import { FRAMEWORKS } from '../../http/support/frameworks.js'
import { startRedis } from '../../support/redis-server.js'

const running: RunningApp[] = []
afterEach(async () => {
  for (const app of running.splice(0)) await app.close()
})

/** One app per framework, each with a limiter of the same options. */
async function startAll(options: AnyOptions): Promise<RunningApp[]> {
  for (const factory of Object.values(FRAMEWORKS)) {
    running.push(await run(factory, { routes: { '/': { limiters: [options] } } }))
  }
  return running
}

async function admittedOf(apps: readonly RunningApp[], rounds: number): Promise<number> {
  const sent = Array.from({ length: rounds }, () => apps.map(async ({ url }) => (await request(url).get('/')).status))
  const statuses = await Promise.all(sent.flat())
  expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([])
  return statuses.filter((status) => status === 200).length
}

test('limiters of one name on one memory store share one limit over all frameworks', async () => {
  const apps = await startAll({ name: 'together', store: memoryStore(), limit: 10, window: '1m' })
  expect(await admittedOf(apps, 5)).toBe(10)
})

test('limiters of one name on one Redis share one limit over all frameworks, each with its own client', async () => {
  const server = await startRedis()
  const clients: Redis[] = []
  try {
    for (const factory of Object.values(FRAMEWORKS)) {
      const client = new Redis(server.url)
      clients.push(client)
      const options = {
        name: 'together',
        store: redisStore(client, { timeout: 5000 }),
        limit: 10,
        window: '1m',
      } as const
      running.push(await run(factory, { routes: { '/': { limiters: [options] } } }))
    }
    expect(await admittedOf(running, 5)).toBe(10)
  } finally {
    for (const client of clients) client.disconnect()
    await server.stop()
  }
})

test('every framework frees its permit on Redis for the next request', async () => {
  const server = await startRedis()
  const client = new Redis(server.url)
  const store = redisStore(client, { timeout: 5000 })
  try {
    const apps = await startAll({ name: 'busy', store, limits: [concurrency({ limit: 1 })] })
    for (const { url } of [...apps, ...apps]) expect((await request(url).get('/')).status).toBe(200)
    await expect.poll(async () => (await server.lifetimes()).size).toBe(0)
  } finally {
    await store.close()
    client.disconnect()
    await server.stop()
  }
})
