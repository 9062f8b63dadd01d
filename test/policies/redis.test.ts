import { policies, RedisDocuments, VersionConflict } from '@sluice/policies'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

let server: RedisServer
let client: Redis
let documents: RedisDocuments

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.url, { maxRetriesPerRequest: 1 })
  client.on('error', () => {})
  documents = new RedisDocuments((command, ...args) => client.call(command, ...args), 'default', 'sluice:')
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})
beforeEach(() => server.flush())

const document = (limit: number) => `version: 1\npolicies: { api: { limits: [{ limit: ${limit}, window: 1m }] } }`

const limitOf = (loaded: Awaited<ReturnType<typeof policies.from>>) =>
  loaded.byName.get('api')?.options.limits?.[0]?.limit

test('what one saves is in force in every process', async () => {
  await documents.save(document(1), 0, 'ann')
  const other = await createClient({ url: server.url }).connect()
  const both = [await policies.from({ redis: client }), await policies.from({ redis: other })]
  expect(both.map(limitOf)).toEqual([1, 1])
  await documents.save(document(2), 1, 'bob')
  await until('both have it', () => both.every((loaded) => limitOf(loaded) === 2 && loaded.version === '2'))
  for (const loaded of both) await loaded.close()
  await other.close()
})

test('of two editors of one version the second is refused, and changes nothing', async () => {
  await documents.save(document(1), 0, 'ann')
  const results = await Promise.allSettled([
    documents.save(document(2), 1, 'ann'),
    documents.save(document(3), 1, 'bob'),
  ])
  expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  const refused = results.find((result) => result.status === 'rejected')
  expect(refused?.reason).toBeInstanceOf(VersionConflict)
  expect(await documents.version()).toBe(2)
})

test('the last twenty versions are kept, with who and when', async () => {
  for (let n = 0; n < 23; n++) await documents.save(document(n), n, `ann-${n}`)
  const history = await documents.history()
  expect(history.map(({ version }) => version)).toEqual(Array.from({ length: 20 }, (_, i) => 23 - i))
  expect(history[0]).toMatchObject({ by: 'ann-22', text: document(22) })
  expect(Math.abs((history[0]?.at ?? 0) - Date.now())).toBeLessThan(600_000)
})

test('a wrong version leaves the last good one in force', async () => {
  await documents.save(document(1), 0, 'ann')
  const loaded = await policies.from({ redis: client })
  await documents.save('version: 1\npolicies: { api: {} }', 1, 'ann')
  await until('it is looked at', () => loaded.error)
  expect(loaded.error?.message).toMatch(/redis:default:2:13: policies.api: expected limits/)
  expect(limitOf(loaded)).toBe(1)
  await loaded.close()
})

test('while Redis is away the policies stay, and what is saved after it is back is in force', async () => {
  const own = await startRedis()
  const ours = new Redis(own.url, { maxRetriesPerRequest: 0 })
  ours.on('error', () => {})
  const there = new RedisDocuments((command, ...args) => ours.call(command, ...args), 'default', 'sluice:')
  await there.save(document(1), 0, 'ann')
  const loaded = await policies.from({ redis: ours })
  await own.stop()
  await until('it is missed', () => loaded.error)
  expect(limitOf(loaded)).toBe(1)
  await loaded.close()
  ours.disconnect()
})

test('without a document it fails, and says what saves one', async () => {
  await expect(policies.from({ redis: client })).rejects.toThrow(/Redis has none so far: sluice apply saves one/)
})
