import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
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

test('a saved document comes into force in every process', async () => {
  await documents.save(document(1), 0, 'ann')
  const other = await createClient({ url: server.url }).connect()
  const both = [await policies.from({ redis: client }), await policies.from({ redis: other })]
  expect(both.map(limitOf)).toEqual([1, 1])
  await documents.save(document(2), 1, 'bob')
  await until('both have it', () => both.every((loaded) => limitOf(loaded) === 2 && loaded.version === '2'))
  for (const loaded of both) await loaded.close()
  await other.close()
})

test('the second of two editors of one version is rejected, and changes nothing', async () => {
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

test('the last twenty versions are stored with author and time', async () => {
  for (let n = 0; n < 23; n++) await documents.save(document(n), n, `ann-${n}`)
  const history = await documents.history()
  expect(history.map(({ version }) => version)).toEqual(Array.from({ length: 20 }, (_, i) => 23 - i))
  expect(history[0]).toMatchObject({ by: 'ann-22', text: document(22) })
  expect(Math.abs((history[0]?.at ?? 0) - Date.now())).toBeLessThan(600_000)
})

test('an invalid version leaves the last one in force', async () => {
  await documents.save(document(1), 0, 'ann')
  const loaded = await policies.from({ redis: client })
  await documents.save('version: 1\npolicies: { api: {} }', 1, 'ann')
  await until('the version is read', () => loaded.error)
  expect(loaded.error?.message).toMatch(/redis:default:2:13: policies.api: expected limits/)
  expect(limitOf(loaded)).toBe(1)
  await loaded.close()
})

test('an outage that ends between a look and a load leaves no error behind', async () => {
  await documents.save(document(1), 0, 'ann')
  let failing = /never/
  const call = async (command: string, ...args: string[]) => {
    if (failing.test(command)) throw new Error('timeout')
    return client.call(command, ...args)
  }
  const loaded = await policies.from({ redis: { call } })
  failing = /./
  await until('the outage is noticed', () => loaded.error)
  failing = /LINDEX/
  await sleep(1200)
  expect(loaded.error).toBeDefined()
  failing = /never/
  await until('the document can be read again', () => loaded.error === undefined)
  await loaded.close()
})

describe('Redis that is killed', () => {
  /** Policies from their own Redis, which has one version. */
  async function loadedFrom(settings: readonly string[]) {
    const own = await startRedis({ settings })
    const ours = new Redis(own.url, { maxRetriesPerRequest: 0, retryStrategy: () => 50 })
    ours.on('error', () => {})
    const there = new RedisDocuments((command, ...args) => ours.call(command, ...args), 'default', 'sluice:')
    await there.save(document(1), 0, 'ann')
    const loaded = await policies.from({ redis: ours })
    own.kill('SIGKILL')
    await until('the outage is noticed', () => loaded.error)
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

  test('a killed Redis leaves the policies in force, and a later version comes into force once it is back', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'policies-'))
    open.push(async () => rmSync(folder, { recursive: true }))
    const { own, there, loaded } = await loadedFrom([`dir ${folder}`, 'appendonly yes', 'appendfsync always'])
    await own.restart()
    await until('Redis is back', () => loaded.error === undefined)
    expect(limitOf(loaded)).toBe(1)
    await until('the version is saved', async () => (await there.save(document(2), 1, 'ann')) === 2)
    await until('the version is in force', () => limitOf(loaded) === 2)
  })

  test('a Redis that comes back empty leaves the policies in force, until a first version is saved', async () => {
    const { own, there, loaded } = await loadedFrom([])
    await own.restart()
    await until('the process knows that Redis is empty', () => loaded.error?.message.includes('Redis has none so far'))
    expect(limitOf(loaded)).toBe(1)
    expect(await there.save(document(3), 0, 'ann')).toBe(1)
    await until('the version is in force', () => limitOf(loaded) === 3 && loaded.error === undefined)
  })
})

test('a first version saved after a loss of data replaces the earlier first version', async () => {
  await documents.save(document(1), 0, 'ann')
  const loaded = await policies.from({ redis: client })
  // No outage is noticed: it all happens between two polls.
  await server.flush()
  await documents.save(document(2), 0, 'ann')
  await until('the version is in force', () => limitOf(loaded) === 2)
  await loaded.close()
})

test('without a document the start fails, and the error names the command that saves one', async () => {
  await expect(policies.from({ redis: client })).rejects.toThrow(/Redis has none so far: sluice apply saves one/)
})
