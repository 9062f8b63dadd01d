// Release: runs PostgreSQL.
import { setTimeout as sleep } from 'node:timers/promises'
import { memoryStore } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { type Policies, policies } from '@sluice/policies'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { contextOf } from '../support/context.js'
import { startPlaces } from './places.js'

const { redis, client, pool, documents } = await startPlaces()

interface Client {
  readonly user: string
}

const keys = { user: (request: Client) => request.user }
const hour = (limit: number) => [{ limit, window: '1h' }]
const api = (limit: number) => ({ api: { key: 'user', limits: hour(limit), respond: { queue: { maxWait: '12h' } } } })
const toAnn = (limit: number, ms = 600_000) => ({
  policy: 'api',
  key: { user: 'ann' },
  limits: [{ limit }],
  until: Date.now() + ms,
})

/** Requests and calls of `acquire` of one client. Their limits are in a store of this process. */
function requestsOf(loaded: Policies) {
  const guard = createGuard<Client>({ policies: loaded, store: memoryStore() })
  const request = async () => (await guard(contextOf({ request: { user: 'ann' } } as never) as never)).proceed
  const acquire = async () => (await guard.limiter.acquire({ user: 'ann' }, { maxWait: '12h' })).allowed
  return { request, acquire }
}

const opened: Policies[] = []
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close()
})

describe.each(['redis', 'postgres'] as const)(
  'requests that wait, and an override beside their document in %s',
  (kind) => {
    const source = { redis: { redis: client }, postgres: { postgres: { pool, lookupTimeout: 10_000 } } }[kind]
    const ann = { by: 'ann', changes: memoryStore().changes }
    beforeEach(async () => {
      await redis.flush()
      await pool.query('TRUNCATE sluice_policies, sluice_overrides, sluice_removed')
      await documents[kind]().save(JSON.stringify({ version: 1, policies: api(2) }), 0, 'ann')
    })

    async function from(): Promise<Policies> {
      const loaded = await policies.from({ ...source, save: kind === 'redis' ? client : pool, keys })
      opened.push(loaded)
      return loaded
    }

    test.each(['this process', 'another one'])(
      'are admitted when it is set by %s, as are those behind them',
      async (by) => {
        const loaded = await from()
        const { request, acquire } = requestsOf(loaded)
        expect([await request(), await acquire()]).toEqual([true, true])
        const waiting = [request(), acquire()]
        await sleep(20)
        const { overrides } = by === 'this process' ? loaded : await from()
        await overrides.set(toAnn(100), ann)
        expect(await Promise.all([...waiting, request()])).toEqual([true, true, true])
      },
    )

    test('look up their limits about once a second while many overrides of others are written', async () => {
      let lookups = 0
      const loaded = await policies.from({
        ...source,
        save: kind === 'redis' ? client : pool,
        keys: {
          user: ({ user }: Client) => {
            lookups++
            return user
          },
        },
      })
      opened.push(loaded)
      const { request } = requestsOf(loaded)
      expect([await request(), await request()]).toEqual([true, true])
      const waiting = request()
      await sleep(20)
      const [before, began] = [lookups, performance.now()]
      for (let n = 0; n < 40; n++) await loaded.overrides.set({ ...toAnn(3), key: { user: `user ${n}` } }, ann)
      const inSeconds = Math.ceil((performance.now() - began) / 1000) + 1
      expect(lookups - before).toBeLessThanOrEqual(6 * inSeconds)
      await loaded.overrides.set(toAnn(3), ann)
      expect(await waiting).toBe(true)
    })

    test('are admitted when one that admits less is removed', async () => {
      const loaded = await from()
      const { request } = requestsOf(loaded)
      const { version } = await loaded.overrides.set(toAnn(1), ann)
      expect(await request()).toBe(true)
      const waiting = request()
      await sleep(20)
      await loaded.overrides.remove({ policy: 'api', key: { user: 'ann' }, expected: version }, ann)
      expect(await waiting).toBe(true)
    })

    test.each(['request', 'acquire'] as const)('are admitted when one that admits less ends: %s', async (how) => {
      const loaded = await from()
      const requests = requestsOf(loaded)
      const override = toAnn(1, 1000)
      await loaded.overrides.set(override, ann)
      expect(await requests.request()).toBe(true)
      expect(await requests[how]()).toBe(true)
      expect(Date.now()).toBeGreaterThanOrEqual(override.until)
    })
  },
)

test('requests that wait are admitted when an override of their document ends', async () => {
  const until = Date.now() + 1000
  const override = { ...toAnn(1), until: new Date(until).toISOString() }
  const document = { version: 1, policies: api(2), overrides: [override] }
  const { request } = requestsOf(await policies.from({ object: document, keys }))
  expect(await request()).toBe(true)
  expect(await request()).toBe(true)
  expect(Date.now()).toBeGreaterThanOrEqual(until)
})

test('requests that wait are admitted by an override in PostgreSQL that is found too late for their decision', async () => {
  await pool.query('TRUNCATE sluice_policies, sluice_overrides, sluice_removed')
  await documents.postgres().save(JSON.stringify({ version: 1, policies: api(1) }), 0, 'ann')
  const loaded = await policies.from({ postgres: { pool, lookupTimeout: 1 }, save: pool, keys })
  opened.push(loaded)
  const { request } = requestsOf(loaded)
  expect(await request()).toBe(true)
  const waiting = request()
  await sleep(20)
  await loaded.overrides.set(toAnn(2), { by: 'ann', changes: memoryStore().changes })
  expect(await waiting).toBe(true)
})
