import { randomUUID } from 'node:crypto'
import { memoryStore, type Store } from '@sluice/core'
import { beforeAll, describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { ask, startConsole, storeOnRedis, withBody } from './support.js'

const WEEK_MS = 604_800_000

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
  return () => redis.stop()
})

const open = closedAfterEach()

const redisOf = (prefix: string): Promise<Store> => storeOnRedis(redis.port, prefix, open)

const STORES: Readonly<Record<string, () => Promise<Store>>> = {
  'in memory': async () => memoryStore(),
  'on Redis': () => redisOf(`${randomUUID()}:`),
}

/** A console with its two questions. Operators: `ann` may act, `bob` may read, `eve` is none. */
async function served(store: Store) {
  const port = await startConsole({ store } as never, open)
  const post = (path: string, body: object, who = 'bob') =>
    ask(port, `/sluice/api/${path}`, { headers: withBody(port, who), body })
  return {
    idOf: (kind: string, value: unknown, who?: string) => post('id', { identity: { kind, value } }, who),
    clientOf: (id: unknown, who?: string) => post('client', { id } as object, who),
    forget: (kind: string, value: string) => post('forget', { identity: { kind, value }, confirmed: true }, 'ann'),
  }
}

describe.each(Object.keys(STORES))('%s', (name) => {
  const start = async () => served(await (STORES[name] as () => Promise<Store>)())

  test('an id stands for a client as limits count it, the same one for everyone', async () => {
    const { idOf, clientOf } = await start()
    const { status, json } = await idOf('ip', '2001:db8:1:2::3')
    expect(status).toBe(200)
    expect(json.id).toMatch(/^[\w-]{16}$/)
    expect((await idOf('ip', '2001:DB8:1:2:ffff::', 'ann')).json).toEqual(json)
    expect((await clientOf(json.id, 'ann')).json).toEqual({ client: { kind: 'ip', value: '2001:db8:1:2::/64' } })
    const composed = await idOf('ip+route', ['192.0.2.7', '/login'])
    expect((await clientOf(composed.json.id)).json.client).toMatchObject({ kind: 'ip+route' })
    expect(composed.json.id).not.toBe(json.id)
  })

  test('a secret is a hash, in the answer and in the store', async () => {
    const { idOf, clientOf } = await start()
    const { json } = await idOf('header:x-api-key', 'a-raw-secret')
    const { text } = await clientOf(json.id)
    expect(text).not.toContain('a-raw-secret')
    expect(JSON.parse(text).client.kind).toBe('header:x-api-key')
  })

  test('an erased client has no id any more, and another one later', async () => {
    const { idOf, clientOf, forget } = await start()
    const { id } = (await idOf('user', 'ann')).json
    expect((await forget('user', 'ann')).status).toBe(200)
    expect((await clientOf(id)).json).toEqual({ client: null })
    expect((await idOf('user', 'ann')).json.id).not.toBe(id)
  })

  test('a text that is no id resolves to no client', async () => {
    const { idOf, clientOf } = await start()
    const { id } = (await idOf('user', 'ann')).json
    for (const text of ['x', '..', '*', `${id} `, id.slice(1), id.toUpperCase(), `id:${id}`, '__proto__', '\u0000']) {
      expect((await clientOf(text)).json, text).toEqual({ client: null })
    }
    for (const wrong of ['', 'x'.repeat(33), 1, null, [id]]) expect((await clientOf(wrong)).status).toBe(400)
  })

  test('an operator is given 100 ids an hour, and others are given theirs', async () => {
    const { idOf } = await start()
    for (let n = 0; n < 100; n++) expect((await idOf('user', `u${n}`)).status).toBe(200)
    const refused = await idOf('user', 'one more')
    expect(refused).toMatchObject({ status: 429, json: { detail: 'the console gives an operator 100 ids an hour' } })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(3500)
    expect((await idOf('user', 'one more', 'ann')).status).toBe(200)
  })

  test('neither is for those who may not use the console', async () => {
    const { idOf, clientOf } = await start()
    expect([(await idOf('user', 'ann', 'eve')).status, (await clientOf('x', 'eve')).status]).toEqual([403, 403])
  })
})

test('in memory, an id ends after a week, and each use adds one', async () => {
  let now = Date.now()
  const { idOf, clientOf } = await served(memoryStore({ clock: () => now }))
  const { id } = (await idOf('user', 'ann')).json
  for (const _ of [1, 2, 3]) {
    now += WEEK_MS - 1000
    expect((await clientOf(id)).json.client).toEqual({ kind: 'user', value: 'ann' })
  }
  now += WEEK_MS + 1000
  expect((await clientOf(id)).json.client).toBe(null)
})

test('on Redis, the keys of an id end after a little more than a week', async () => {
  const prefix = `${randomUUID()}:`
  const { idOf } = await served(await redisOf(prefix))
  await idOf('user', 'ann')
  const lifetimes = [...(await redis.lifetimes())].filter(
    ([key]) => /:(id|client):/.test(key) && key.startsWith(prefix),
  )
  expect(lifetimes).toHaveLength(2)
  for (const [key, leftMs] of lifetimes) {
    expect(leftMs, key).toBeGreaterThan(WEEK_MS * 0.99)
    expect(leftMs, key).toBeLessThan(WEEK_MS * 1.11)
  }
})
