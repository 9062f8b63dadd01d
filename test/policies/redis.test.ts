import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { policies, RedisDocuments, VersionConflict } from '@sluice/policies'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
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

describe('a Redis that is killed leaves the policies in force,', () => {
  /** Policies from a Redis of their own, which has one version. */
  async function loadedFrom(settings: readonly string[]) {
    const own = await startRedis({ settings })
    const ours = new Redis(own.url, { maxRetriesPerRequest: 0, retryStrategy: () => 50 })
    ours.on('error', () => {})
    const there = new RedisDocuments((command, ...args) => ours.call(command, ...args), 'default', 'sluice:')
    await there.save(document(1), 0, 'ann')
    const loaded = await policies.from({ redis: ours })
    own.kill('SIGKILL')
    await until('it is missed', () => loaded.error)
    expect(limitOf(loaded)).toBe(1)
    open.push(async () => {
      await loaded.close()
      ours.disconnect()
      await own.stop()
    })
    return { own, there, loaded }
  }

  const open: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const close of open.splice(0)) await close()
  })

  test('and what is saved once it is back is in force', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'policies-'))
    open.push(async () => rmSync(folder, { recursive: true }))
    const { own, there, loaded } = await loadedFrom([`dir ${folder}`, 'appendonly yes', 'appendfsync always'])
    await own.restart()
    await until('it is there again', () => loaded.error === undefined)
    expect(limitOf(loaded)).toBe(1)
    await until('it is saved', async () => (await there.save(document(2), 1, 'ann')) === 2)
    await until('it is in force', () => limitOf(loaded) === 2)
  })

  test('also where it comes back empty, and its versions begin anew', async () => {
    const { own, there, loaded } = await loadedFrom([])
    await own.restart()
    await until('it is known to be empty', () => loaded.error?.message.includes('Redis has none so far'))
    expect(limitOf(loaded)).toBe(1)
    expect(await there.save(document(3), 0, 'ann')).toBe(1)
    await until('it is in force', () => limitOf(loaded) === 3 && loaded.error === undefined)
  })
})

test('a first version after Redis has lost its data is told from the first before', async () => {
  await documents.save(document(1), 0, 'ann')
  const loaded = await policies.from({ redis: client })
  // Nothing is missed meanwhile: it all happens between two looks.
  await server.flush()
  await documents.save(document(2), 0, 'ann')
  await until('it is in force', () => limitOf(loaded) === 2)
  await loaded.close()
})

test('without a document it fails, and says what saves one', async () => {
  await expect(policies.from({ redis: client })).rejects.toThrow(/Redis has none so far: sluice apply saves one/)
})
