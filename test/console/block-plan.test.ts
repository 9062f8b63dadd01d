// Runs alone: it watches every decision of its process.
import { randomUUID } from 'node:crypto'
import { createLimiter, type ManagedStore, memoryStore, storeList } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { beforeAll, describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { contextOf } from '../support/context.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { ask, startConsole, storeOnRedis, withBody } from './support.js'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
  return () => redis.stop()
})

const open = closedAfterEach()

const STORES: Readonly<Record<string, () => Promise<ManagedStore>>> = {
  'in memory': async () => memoryStore(),
  'on Redis': () => storeOnRedis(redis.port, `${randomUUID()}:`, open),
}

describe.each(Object.keys(STORES))('%s, the effect of a block', (name) => {
  async function served(options: object = { traffic: true }) {
    const store = await (STORES[name] as (typeof STORES)[string])()
    const partners = store.list('partners')
    const web = createGuard({ name: 'web', store, limit: 2, window: '1h', allow: storeList('partners') })
    const port = await startConsole(
      { store, limiters: [web] as never, lists: ['partners', 'unused'], ...options },
      open,
    )
    return {
      store,
      web,
      partners,
      plan: async (identity: object, more: object = {}) => {
        const body = { identity, ...more }
        return (await ask(port, '/sluice/api/block/plan', { headers: withBody(port, 'bob'), body })).json
      },
      block: (identity: object) =>
        ask(port, '/sluice/api/block', { headers: withBody(port), body: { identity, for: '1h' } }),
    }
  }

  test('is who was refused and decided of late, who is admitted all the same, and what it replaces', async () => {
    const { store, web, partners, plan, block } = await served()
    await partners.add({ ip: '192.0.2.9' })
    await partners.add({ ip: '192.0.2.32/28' })
    await partners.add({ ip: '198.51.100.1' })
    await store.list('unused').add({ ip: '192.0.2.8' })
    for (const ip of ['192.0.2.7', '192.0.2.7', '192.0.2.7', '192.0.2.7', '192.0.2.8', '192.0.2.9', '203.0.113.1'])
      await web(contextOf({ ip }))
    const network = { kind: 'ip', value: '192.0.2.0/24' }
    expect(await plan(network)).toEqual({
      identity: network,
      isOwn: false,
      ownAddress: '127.0.0.1',
      allowedBy: [],
      allowedInside: [{ list: 'partners', entries: 2 }],
      refused: { clients: 1, count: 2 },
      traffic: { clients: 3, count: 6, refused: 2 },
    })
    const one = { kind: 'ip', value: '192.0.2.7' }
    expect(await plan(one)).toEqual({
      identity: one,
      isOwn: false,
      ownAddress: '127.0.0.1',
      allowedBy: [],
      allowedInside: [],
      refused: { clients: 1, count: 2 },
      traffic: { clients: 1, count: 4, refused: 2 },
    })
    expect(await plan({ kind: 'ip', value: '192.0.2.9' })).toMatchObject({
      allowedBy: [{ limiter: 'web', list: 'partners' }],
      refused: { count: 0 },
    })
    // Changes nothing.
    expect((await store.blocks.list()).entries).toEqual([])
    const { entry } = (await block(one)).json
    expect((await plan(one)).before).toEqual(entry)
    expect((await plan(one, { policy: 'web' })).before).toBeUndefined()
  })

  test('warns operators of their own address, in every form of it', async () => {
    const { plan } = await served({})
    const isOwn = async (value: string, more: object = {}) => (await plan({ kind: 'ip', value, ...more })).isOwn
    expect(await isOwn('127.0.0.0/8')).toBe(true)
    expect(await isOwn('127.0.0.1')).toBe(true)
    expect(await isOwn('::ffff:127.0.0.1')).toBe(true)
    expect(await isOwn('127.0.0.1', { counted: true })).toBe(true)
    expect(await isOwn('192.0.2.0/24')).toBe(false)
  })

  test('of other kinds is of exactly this client, by its hash where it is secret', async () => {
    const { store, plan } = await served()
    const mail = createLimiter({ name: 'mail', store, limit: 1, window: '1h', key: (key: string) => key })
    for (let n = 0; n < 3; n++) await mail.consume('ann')
    await mail.consume('ann marie')
    expect(await plan({ kind: 'key', value: 'ann' })).toMatchObject({
      refused: { clients: 1, count: 2 },
      traffic: { clients: 1, count: 3, refused: 2 },
    })
    const { identity } = await plan({ kind: 'header:x-api-key', value: 'k-4f1c' })
    expect(identity.value).not.toContain('k-4f1c')
  })

  test('of a text that is no address is a sentence', async () => {
    const { plan } = await served({})
    expect(await plan({ kind: 'ip', value: '192.0.2' })).toMatchObject({ status: 400, detail: /an address/ })
    expect(await plan({ kind: 'ip', value: '192.0.2.0/99' })).toMatchObject({ status: 400 })
  })
})
