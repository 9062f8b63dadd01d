import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { Validator } from '@seriousme/openapi-schema-validator'
import { recordRefusals } from '@sluice/console'
import { consoleFor } from '@sluice/console/fastify'
import { consoleFor as onKoa } from '@sluice/console/koa'
import { byIp, createLimiter, type ManagedStore, memoryStore, redisStore, type Store, storeList } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { type Policies, policies, RedisDocuments } from '@sluice/policies'
import fastify from 'fastify'
import { Redis } from 'ioredis'
import Koa from 'koa'
import { beforeAll, describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { contextOf } from '../support/context.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'
import { APPS, ask, asOperator, authorize, portOf, type StartApp, withBody } from './support.js'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
  return () => redis.stop()
})

const open = closedAfterEach()

const STORES = {
  memory: () => memoryStore({ offenders: true }),
  Redis: () => storeOn(randomUUID()),
}

function storeOn(prefix: string) {
  const client = new Redis(redis.port)
  const store = redisStore(client, { prefix, offenders: true, timeout: 10_000 })
  open.push(
    () => client.quit(),
    () => store.close(),
  )
  return store
}

const IP = { kind: 'ip', value: '192.0.2.7' }

const STORE_NAMES = Object.keys(STORES) as (keyof typeof STORES)[]

describe.each(STORE_NAMES)('the console on %s', (name) => {
  async function served(start: StartApp, more: object = {}) {
    const store: ManagedStore = STORES[name]()
    const mail = createLimiter({ name: 'mail', store, limit: 2, window: '1h', key: (ip: string) => ip })
    const document = await policies.from({
      object: {
        version: 1,
        policies: {
          search: { match: { paths: ['/search'] }, limits: [{ limit: 3, window: '1h' }] },
          api: {
            key: 'user',
            tier: 'plan',
            tiers: { free: [{ limit: 5, window: '1h' }], paid: [{ limit: 50, window: '1h' }] },
          },
        },
        overrides: [
          { policy: 'search', range: '192.0.2.0/24', limits: [{ limit: 30 }] },
          { policy: 'api', key: { user: 'ann' }, limits: [{ limit: 7 }] },
        ],
      },
      keys: { user: () => undefined },
      tiers: { plan: () => 'free' },
    })
    const server = await start({
      store,
      limiters: [mail],
      policies: document,
      lists: ['vip'],
      authorize,
      ...more,
    })
    open.push(() => closed(server))
    const port = portOf(server)
    const get = (path: string) => ask(port, `/sluice/api${path}`, { headers: asOperator(port) })
    const post = (path: string, body: object) => ask(port, `/sluice/api${path}`, { headers: withBody(port), body })
    return { store, mail, port, get, post, document }
  }

  describe.each(Object.entries(APPS))('with %s', (_framework, start) => {
    test('shows what each limit has left for an identity, as a peek does', async () => {
      const { mail, post } = await served(start)
      await mail.consume('192.0.2.7')
      const peeked = await mail.peek('192.0.2.7')
      const { status, json } = await post('/identity', { identity: { kind: 'key', value: '192.0.2.7' } })
      expect(status).toBe(200)
      expect(json.identity).toEqual({ kind: 'key', value: '192.0.2.7' })
      expect(json.limits).toMatchObject([
        { limiter: 'mail', allowed: true, limits: [{ name: 'mail', limit: 2, remaining: peeked.remaining }] },
      ])
    })

    test('blocks and unblocks as the store does', async () => {
      const { store, post, mail } = await served(start)
      const blocked = await post('/block', { identity: IP, for: '1h', reason: 'scraping' })
      expect(blocked.status).toBe(200)
      const entry = await store.blocks?.get({ ip: '192.0.2.7' })
      expect(blocked.json).toEqual({ entry })
      expect(entry).toMatchObject({ reason: 'scraping', kind: 'ip' })
      expect((await post('/blocks', { kind: 'ip' })).json.entries).toEqual([{ ...entry, by: 'ann' }])
      expect((await post('/identity', { identity: IP })).json.blocks).toEqual([{ ...entry, by: 'ann' }])
      expect((await post('/unblock', { identity: IP })).json).toEqual({ ended: entry })
      expect(await store.blocks?.get({ ip: '192.0.2.7' })).toBeUndefined()
      const key = { kind: 'key', value: 'ann' }
      await post('/block', { identity: key, policy: 'mail', for: '1h' })
      expect((await mail.consume('ann')).reason).toBe('blocked')
      expect((await post('/why', { identity: key })).json.now).toMatchObject([{ limiter: 'mail', reason: 'blocked' }])
    })

    test('says who made a block, and nobody where code or a strike did, or the log does not know', async () => {
      const { store, post } = await served(start)
      const bys = async () => {
        const { entries } = (await post('/blocks', {})).json
        return Object.fromEntries(entries.map(({ value, by }: { value: string; by?: string }) => [value, by]))
      }
      await post('/block', { identity: IP, for: '1h' })
      await store.changes.record({ by: 'carol', action: 'block', identity: { ip: '192.0.2.8' } }, () =>
        store.blocks.add({ ip: '192.0.2.8' }, { for: '1h' }),
      )
      await store.blocks.add({ ip: '192.0.2.9' }, { for: '1h' })
      const failed = store.changes.record({ by: 'eve', action: 'block', identity: { ip: '192.0.2.9' } }, () =>
        Promise.reject(new Error('not made')),
      )
      await expect(failed).rejects.toThrow()
      // The same client by one policy is another block.
      await store.blocks.add({ ip: '192.0.2.7' }, { for: '2h', policy: 'mail' })
      const { entries } = (await post('/blocks', { policy: 'mail', kind: 'ip', prefix: '192.0.2.7' })).json
      expect(entries.map(({ policy, by }: { policy?: string; by?: string }) => [policy, by])).toEqual(
        expect.arrayContaining([
          ['mail', undefined],
          [undefined, 'ann'],
        ]),
      )
      expect(await bys()).toMatchObject({ '192.0.2.8': 'carol', '192.0.2.9': undefined })
    })

    test('filters changes by who made them and by their kind', async () => {
      const { post } = await served(start)
      await post('/block', { identity: IP, for: '1h' })
      await post('/unblock', { identity: IP })
      const actions = async (body: object) =>
        (await post('/changes', body)).json.entries.map(({ action }: { action: string }) => action)
      expect(await actions({ by: 'ann' })).toEqual(['unblock', 'block'])
      expect(await actions({ by: 'ann', action: 'block' })).toEqual(['block'])
      expect(await actions({ by: 'bob' })).toEqual([])
      expect((await post('/changes', { action: '' })).status).toBe(400)
    })

    test('takes identities as responses have them: hashes of headers, and parts of composed kinds', async () => {
      const { store, post } = await served(start)
      const vip = store.list?.('vip')
      for (const given of [
        { kind: 'header:x-api-key', value: 'a secret' },
        { kind: 'ip+route', value: ['192.0.2.7', '/a|b'] },
      ]) {
        const { entry } = (await post('/block', { identity: given, for: '1h' })).json
        const identity = { kind: entry.kind, value: entry.value, counted: true }
        expect(entry.value).not.toBe(given.value)
        expect((await post('/why', { identity })).json).toMatchObject({
          identity: { value: entry.value },
          blocks: [entry],
        })
        expect((await post('/unblock', { identity: { ...identity, counted: false } })).status).not.toBe(200)
        expect((await post('/unblock', { identity })).json).toEqual({ ended: entry })
        expect(await store.blocks?.get({ [given.kind]: given.value as string })).toBeUndefined()
      }
      await vip?.add({ 'header:x-api-key': 'a secret' })
      const [{ kind, value }] = (await post('/list', { list: 'vip' })).json.entries
      expect((await post('/list/remove', { list: 'vip', identity: { kind, value, counted: true } })).status).toBe(200)
      expect((await vip?.list())?.entries).toEqual([])
    })

    test('shows and changes lists as the store does', async () => {
      const { store, post, get } = await served(start)
      const vip = store.list?.('vip')
      const added = await post('/list/add', { list: 'vip', identity: IP, reason: 'a partner' })
      expect(added.json).toEqual({ entry: await vip?.get({ ip: '192.0.2.7' }) })
      expect((await post('/list', { list: 'vip' })).json).toEqual(await vip?.list())
      expect((await post('/identity', { identity: IP })).json.lists).toEqual(['vip'])
      expect((await get('/about')).json.features.lists).toContain('vip')
      expect((await post('/list/remove', { list: 'vip', identity: IP })).status).toBe(200)
      expect(await vip?.get({ ip: '192.0.2.7' })).toBeUndefined()
    })

    test('shows the lists that contain an address of IPv6, also in a part of its /64', async () => {
      const { post } = await served(start)
      const ipOf = (value: string) => ({ identity: { kind: 'ip', value } })
      const listsOf = async (value: string) => (await post('/identity', ipOf(value))).json.lists
      await post('/list/add', { list: 'vip', ...ipOf('2001:db8:1:0:8000::/66') })
      expect(await listsOf('2001:db8:1:0:8000::1')).toEqual(['vip'])
      expect(await listsOf('[2001:db8:1:0:8000::1]')).toEqual(['vip'])
      expect(await listsOf('2001:db8:1::1')).toEqual([])
      if (name === 'Redis') {
        const search = (value: string) => post('/identity', { ...ipOf(value), search: true })
        expect((await search('2001:db8:1:0:8000::1')).json.stored.lists).toEqual(['vip'])
        expect((await search('2001:db8:1::1')).json.stored.lists).toEqual([])
      }
      await post('/list/add', { list: 'vip', ...ipOf('2001:db8:2::1') })
      expect(await listsOf('2001:db8:2::ffff')).toEqual(['vip'])
      expect(await listsOf('2001:db8:2::/64')).toEqual(['vip'])
    })

    test('shows its operator, its limits and its routes', async () => {
      const { get } = await served(start)
      expect((await get('/about')).json).toMatchObject({
        operator: { name: 'ann', may: 'act' },
        store: { state: 'available' },
      })
      const { json } = await get('/policies')
      expect(json.limiters).toMatchObject([{ name: 'mail', limits: [{ limit: 2, windowMs: 3_600_000 }] }])
      expect(json.documents[0].policies.map((each: { name: string }) => each.name)).toEqual([
        'search',
        'api.free',
        'api.paid',
      ])
    })
  })

  const start = APPS.Koa as StartApp

  test('shows the limits of a document with overrides, by path and tier', async () => {
    const { post } = await served(start)
    const ofSearch = (await post('/identity', { identity: IP })).json.limits
    expect(ofSearch).toMatchObject([
      { limiter: 'default', policy: 'search', override: { index: 0 }, limits: [{ limit: 30 }] },
    ])
    expect((await post('/identity', { identity: IP, path: '/other' })).json.limits).toEqual([])
    const ann = { kind: 'user', value: 'ann' }
    const ofApi = (await post('/identity', { identity: ann })).json.limits
    expect(
      ofApi.map((each: { tier: string; limits: { limit: number }[] }) => [each.tier, each.limits[0]?.limit]),
    ).toEqual([
      ['free', 7],
      ['paid', 7],
    ])
    const ofBob = (await post('/identity', { identity: { kind: 'user', value: 'bob' }, tier: 'paid' })).json.limits
    expect(ofBob).toMatchObject([{ tier: 'paid', limits: [{ limit: 50 }] }])
  })

  test('shows the last refusals of an identity, and forgets them with it', async () => {
    const { post, get, mail } = await served(start)
    for (let i = 0; i < 4; i++) await mail.consume('ann')
    const ann = { kind: 'key', value: 'ann' }
    const { json } = await post('/why', { identity: ann })
    expect(json.now).toMatchObject([{ limiter: 'mail', reason: 'limited' }])
    expect(json.refusals).toMatchObject([
      { policy: 'mail', limit: 'mail', reason: 'limited', identities: ['key=ann'] },
      { policy: 'mail' },
    ])
    expect((await post('/forget', { identity: ann, confirmed: false })).status).toBe(409)
    expect((await post('/forget', { identity: ann, confirmed: true })).status).toBe(200)
    expect((await get('/refusals')).json.refusals).toEqual([])
    expect((await mail.peek('ann')).remaining).toBe(2)
  })

  test('resets what an identity has used', async () => {
    const { post, mail } = await served(start)
    await mail.consume('ann')
    const { json } = await post('/reset', { identity: { kind: 'key', value: 'ann' } })
    expect(json.reset).toEqual([{ limiter: 'mail' }])
    expect((await mail.peek('ann')).remaining).toBe(2)
  })

  test('resets nothing for a name that no limiter has, and records nothing', async () => {
    const { post, mail } = await served(start)
    await mail.consume('ann')
    const identity = { kind: 'key', value: 'ann' }
    const { status, json } = await post('/reset', { identity, limiter: 'mial' })
    expect({ status, detail: json.detail }).toEqual({
      status: 404,
      detail: 'limiter: no limiter or policy has the name "mial": expected mail or default or search or api',
    })
    expect((await mail.peek('ann')).remaining).toBe(1)
    expect((await post('/changes', {})).json.entries).toEqual([])
    expect((await post('/reset', { identity, limiter: 'mail' })).json.reset).toEqual([{ limiter: 'mail' }])
    const user = { kind: 'user', value: 'ann' }
    expect((await post('/reset', { identity: user, limiter: 'api' })).json.reset).toHaveLength(2)
  })

  test('lists the identities refused most', async () => {
    const { store, post, mail } = await served(start)
    for (let i = 0; i < 4; i++) await mail.consume('ann')
    expect((await post('/offenders', { policy: 'mail' })).json).toEqual(await store.offenders?.({ policy: 'mail' }))
  })

  test('asks an operator first who refuses the network that they come from', async () => {
    const { store, post } = await served(start)
    const own = { kind: 'ip', value: '127.0.0.0/8' }
    const first = await post('/block', { identity: own, for: '1h' })
    expect(first).toMatchObject({ status: 409, json: { confirm: 'own-address' } })
    expect((await store.blocks?.list())?.entries).toEqual([])
    expect((await post('/block', { identity: own, for: '1h', confirmed: true })).status).toBe(200)
    const onOneRoute = { identity: { kind: 'ip+route', value: ['127.0.0.1', '/login'] }, for: '1h' }
    expect(await post('/block', onOneRoute)).toMatchObject({ status: 409, json: { confirm: 'own-address' } })
    // As tables of the page have identities.
    for (const { kind, value } of [
      { kind: 'ip', value: '127.0.0.1' },
      { kind: 'ip+route', value: '127.0.0.1|/login' },
    ]) {
      const asCounted = { identity: { kind, value, counted: true }, for: '1h' }
      expect(await post('/block', asCounted)).toMatchObject({ status: 409, json: { confirm: 'own-address' } })
    }
  })

  test('asks an operator first who puts their own address on a list that a policy denies', async () => {
    const store: ManagedStore = STORES[name]()
    const web = createLimiter({ name: 'web', store, limit: 2, window: '1h', deny: storeList('of-limiter') })
    const document = await policies.from({
      object: {
        version: 1,
        policies: {
          all: { limits: [{ limit: 5, window: '1h' }], denyLists: ['of-document'], allowLists: ['allowed'] },
        },
      },
    })
    const options = { store, limiters: [web], policies: document, lists: ['of-limiter', 'of-document', 'allowed'] }
    const { post, get } = await served(start, options)
    const own = { kind: 'ip', value: '127.0.0.1' }
    for (const list of ['of-limiter', 'of-document']) {
      const first = await post('/list/add', { list, identity: own })
      expect(first).toMatchObject({ status: 409, json: { confirm: 'own-address' } })
      expect((await post('/list', { list })).json.entries).toEqual([])
      expect((await post('/list/add', { list, identity: IP })).status).toBe(200)
      expect((await post('/list/add', { list, identity: own, confirmed: true })).status).toBe(200)
    }
    expect((await post('/list/add', { list: 'allowed', identity: own })).status).toBe(200)
    const { listEffects } = (await get('/about')).json.features
    expect(listEffects).toEqual({ 'of-limiter': ['deny'], 'of-document': ['deny'], allowed: ['allow'] })
  })

  test('says what is wrong with a body', async () => {
    const { post } = await served(start)
    const details = async (path: string, body: object) => (await post(path, body)).json.detail
    expect(await details('/block', { identity: IP })).toBe('for: expected a value: it is missing')
    expect(await details('/block', { identity: IP, for: '1 hour' })).toMatch(
      /for: expected whole milliseconds or a duration/,
    )
    expect(await details('/block', { identity: { kind: 'ip', value: 'x' }, for: '1h' })).toMatch(/expected an address/)
    expect(await details('/blocks', { max: 1001 })).toBe('max: expected a whole number from 1 to 1000')
    expect(await details('/unblock', { identity: IP })).toBe('it has no block of every policy')
    expect(await details('/list/add', { list: 'vip', identity: IP, expiresAt: 1 })).toMatch(/an instant in the future/)
    // A mistake is no act: the log of changes leaves it out.
    expect((await post('/changes', {})).json.entries).toEqual([])
  })
})

test.each(STORE_NAMES)('names the network that refuses a client, and ends the block of a /56, on %s', async (name) => {
  const store: ManagedStore = STORES[name]()
  const byPrefix = byIp({ ipv6Prefix: 56 })
  const web = createGuard({ name: 'web', store, limit: 5, window: '1h', key: byPrefix })
  const server = await (APPS.Koa as StartApp)({ store, limiters: [web], authorize })
  open.push(() => closed(server))
  const port = portOf(server)
  const post = async (path: string, body: object) =>
    (await ask(port, `/sluice/api/${path}`, { headers: withBody(port), body })).json
  await store.blocks?.add({ ip: '198.18.4.0/24' }, { for: '1h' })
  const inNetwork = await post('why', { identity: { kind: 'ip', value: '198.18.4.9' } })
  expect(inNetwork).toMatchObject({ now: [{ reason: 'blocked' }], blocks: [], networks: [{ value: '198.18.4.0/24' }] })
  const client = { kind: 'ip', value: '2001:db8:1:2::5' }
  await web.limiter.block({ ip: client.value }, { for: '1h' })
  const { blocks, networks } = await post('why', { identity: client })
  expect({ blocks, networks }).toMatchObject({ blocks: [{ value: '2001:db8:1::/56', policy: 'web' }], networks: [] })
  expect((await post('identity', { identity: client })).blocks).toMatchObject([{ value: '2001:db8:1::/56' }])
  const [{ kind, value, policy }] = blocks
  expect(await post('unblock', { identity: { kind, value, counted: true }, policy })).toMatchObject({
    ended: { value },
  })
  expect(await post('why', { identity: client })).toMatchObject({ now: [], unknown: [], blocks: [] })
})

test('an override takes a raw API key, as the page finds it, and the hash of an answer', async () => {
  const store = memoryStore()
  const object = { version: 1, policies: { api: { key: 'header:x-api-key', limits: [{ limit: 5, window: '1h' }] } } }
  const document = await policies.from({ object: object as never })
  const server = await (APPS.Koa as StartApp)({ store, policies: document, authorize })
  open.push(() => closed(server))
  const port = portOf(server)
  const post = async (path: string, body: object) =>
    (await ask(port, `/sluice/api/${path}`, { headers: withBody(port), body })).json
  const raw = { kind: 'header:x-api-key', value: 'a secret' }
  const found = (await post('why', { identity: raw })).identity
  const plan = (identity: object) =>
    post('override/plan', { policy: 'api', identity, limits: [{ limit: 9 }], until: '2090-01-01T00:00:00Z' })
  const byRaw = await plan(raw)
  expect(byRaw).toMatchObject({ value: expect.stringMatching(/^sha256:/), changes: [{ after: { limit: 9 } }] })
  expect((await plan({ ...found, counted: true })).value).toBe(byRaw.value)
})

test('an override of a bucket shows and changes its capacity and its refill', async () => {
  const store = memoryStore()
  const bucket = { algorithm: 'tokenBucket', capacity: 5, limit: 1, window: '1s' }
  const document = await policies.from({ object: { version: 1, policies: { api: { limits: [bucket] } } } })
  const server = await (APPS.Koa as StartApp)({ store, policies: document, authorize })
  open.push(() => closed(server))
  const port = portOf(server)
  const shown = (await ask(port, '/sluice/api/policies', { headers: asOperator(port) })).json.documents[0].policies
  expect(shown).toMatchObject([{ limits: [{ limit: 1, windowMs: 1000, capacity: 5 }] }])
  const plan = async (limit: object) => {
    const body = { policy: 'api', identity: IP, limits: [limit], until: '2090-01-01T00:00:00Z' }
    return (await ask(port, '/sluice/api/override/plan', { headers: withBody(port), body })).json
  }
  expect((await plan({ capacity: 10, refill: 2 })).changes).toMatchObject([
    { before: { limit: 1, window: 1000, capacity: 5 }, after: { limit: 2, window: 1000, capacity: 10 } },
  ])
  expect((await plan({ capacity: 5, refill: 1 })).changes).toEqual([])
})

test('why: deny lists of a document and of the store, modes and missing identities are in the verdict', async () => {
  const store = memoryStore({ deny: storeList('of-store') })
  const document = await policies.from({
    object: {
      version: 1,
      policies: {
        all: { limits: [{ limit: 5, window: '1h' }], deny: { ip: ['198.18.4.0/24'] }, cost: 3 },
        mine: { key: 'user', limits: [{ limit: 5, window: '1h' }], match: { paths: ['/mine'] } },
        tried: { limits: [{ limit: 0, window: '1h' }], enforce: { mode: 'report' }, match: { paths: ['/tried'] } },
      },
    },
    keys: { user: () => undefined },
  })
  const server = await (APPS.Koa as StartApp)({ store, policies: document, authorize })
  open.push(() => closed(server))
  const port = portOf(server)
  const why = async (value: string, path: string, more: object = {}) => {
    const body = { identity: { kind: 'ip', value }, path, ...more }
    return (await ask(port, '/sluice/api/why', { headers: withBody(port), body })).json
  }
  expect(await why('198.18.4.9', '/')).toMatchObject({
    now: [{ policy: 'all', reason: 'denied', list: { effect: 'deny', kind: 'ip' } }],
  })
  await store.list('of-store').add({ ip: '192.0.2.7' })
  expect(await why('192.0.2.7', '/')).toMatchObject({ now: [{ reason: 'denied', list: { list: 'of-store' } }] })
  expect(await why('192.0.2.8', '/mine')).toMatchObject({ now: [], unknown: [{ policy: 'mine', needs: ['user'] }] })
  const ann = { with: [{ kind: 'user', value: 'ann' }] }
  expect(await why('192.0.2.8', '/mine', ann)).toMatchObject({ now: [], unknown: [] })
  expect(await why('192.0.2.8', '/tried')).toMatchObject({
    now: [],
    reported: [{ policy: 'tried', allowed: false, reported: true }],
    unknown: [],
  })
  // A static cost counts.
  const guard = createGuard({ store, policies: document })
  await guard(contextOf({ ip: '192.0.2.9' }))
  expect(await why('192.0.2.9', '/')).toMatchObject({ now: [{ policy: 'all', reason: 'limited' }] })
})

test('the plan of an override by address says whether it has an effect in this application', async () => {
  const document = await policies.from({
    object: { version: 1, policies: { api: { limits: [{ limit: 5, window: '1h' }] } } },
  })
  open.push(() => document.close())
  const store = memoryStore()
  const server = await (APPS.Koa as StartApp)({ store, policies: document, authorize })
  open.push(() => closed(server))
  const advice = async () => {
    const body = { policy: 'api', identity: IP, limits: [{ limit: 9 }], until: '2090-01-01T00:00:00Z' }
    const { json } = await ask(portOf(server), '/sluice/api/override/plan', { headers: withBody(portOf(server)), body })
    return json.advice
  }
  const guard = createGuard({ store, policies: document, warnings: { SLUICE_OPEN_PROXY: false } })
  await guard(contextOf({ ip: IP.value, proxyTrust: { everyone: 'it', remedy: '', app: {} } }))
  expect(await advice()).toEqual([expect.stringMatching(/has no effect here/)])
  await guard(contextOf({ ip: IP.value, proxyTrust: 'named' }))
  expect(await advice()).toEqual([])
})

test('sets, lists and ends an override until a date, and each change has an entry', async () => {
  const prefix = `${randomUUID()}:`
  const store = storeOn(prefix)
  const client = new Redis(redis.port)
  open.push(() => client.quit())
  const documents = new RedisDocuments((command, ...args) => client.call(command, ...args), 'default', prefix)
  await documents.save('{ version: 1, policies: { api: { key: user, limits: [{ limit: 5, window: 1h }] } } }', 0, 'me')
  const loadedWith = (more: object) =>
    policies.from({ redis: client, prefix, keys: { user: () => undefined }, ...more })
  const asked = async (document: Policies, path: string, body: object) => {
    open.push(() => document.close())
    const server = await (APPS.Koa as StartApp)({ store, policies: document, authorize })
    open.push(() => closed(server))
    const port = portOf(server)
    return ask(port, `/sluice/api/${path}`, { headers: withBody(port), body })
  }
  const identity = { kind: 'user', value: 'ann' }
  const override = {
    policy: 'api',
    identity,
    limits: [{ limit: 50 }],
    until: '2090-01-01T00:00:00Z',
    reason: 'a trial',
  }
  const without = await asked(await loadedWith({}), 'override', override)
  expect(without).toMatchObject({ status: 501, json: { lines: expect.stringContaining('"limit":50') } })

  const document = await loadedWith({ save: client })
  const plan = await asked(document, 'override/plan', override)
  expect(plan.json).toMatchObject({
    canSave: true,
    version: 0,
    changes: [{ before: { limit: 5 }, after: { limit: 50 } }],
  })
  const set = await asked(document, 'override', { ...override, expected: 0 })
  expect(set).toMatchObject({ status: 200, json: { override: { value: 'ann', reason: 'a trial', by: 'ann' } } })
  expect((await asked(document, 'override', { ...override, expected: 0 })).status).toBe(409)
  expect((await asked(document, 'override', { ...override, until: 'Friday' })).json.detail).toMatch(
    /until: expected a time/,
  )
  expect((await asked(document, 'overrides', {})).json.entries).toMatchObject([{ value: 'ann' }])
  expect((await asked(document, 'identity', { identity })).json).toMatchObject({
    limits: [{ limits: [{ limit: 50 }] }],
    overrides: [{ limiter: 'default', policy: 'api', limits: [{ limit: 50 }], by: 'ann', reason: 'a trial' }],
  })
  expect((await asked(document, 'identity', { identity: { kind: 'user', value: 'bob' } })).json.overrides).toEqual([])
  expect((await asked(document, 'reset', { identity, letIn: true })).status).toBe(200)
  await asked(document, 'block', { identity, for: '1h' })
  expect((await asked(document, 'override/remove', { policy: 'api', identity })).status).toBe(200)
  expect((await asked(document, 'override/remove', { policy: 'api', identity })).status).toBe(404)
  const { entries } = (await asked(document, 'changes', {})).json
  expect(entries).toMatchObject([
    { by: 'ann', action: 'override-remove', kind: 'user', value: 'ann', state: 'done' },
    { by: 'ann', action: 'block', after: { for: '1h' }, state: 'done' },
    { by: 'ann', action: 'let-in', kind: 'user', value: 'ann', state: 'done' },
    { by: 'ann', action: 'override', policy: 'api', after: { limits: [{ limit: 50 }] }, state: 'done' },
  ])
})

test.each(['/sluice', '/sluice/', '/', '', '/a/sluice', '/:tenant/sluice/'])(
  'Fastify has the console below the prefix "%s"',
  async (prefix) => {
    const app = fastify()
    await app.register(consoleFor({ store: memoryStore(), authorize: ({ raw }) => authorize(raw) }), { prefix })
    open.push(() => app.close())
    await app.listen({ port: 0, host: '127.0.0.1' })
    const port = portOf(app.server)
    const root = prefix.replace(/\/$/, '').replace(':tenant', 'ann')
    const about = await ask(port, `${root}/api/about`, { headers: asOperator(port) })
    expect(about.json).toMatchObject({ operator: { name: 'ann' } })
    expect((await ask(port, `${root}/api/none`, { headers: asOperator(port) })).status).toBe(404)
    const blocked = await ask(port, `${root}/api/block`, { headers: withBody(port), body: { identity: IP, for: '1h' } })
    expect(blocked.status).toBe(200)
  },
)

test('its OpenAPI document is valid, and every route with a body is a POST', async () => {
  const server = await (APPS.Koa as StartApp)({ store: memoryStore(), authorize })
  open.push(() => closed(server))
  const port = portOf(server)
  const { json } = await ask(port, '/sluice/api/openapi.json', { headers: asOperator(port) })
  expect(await new Validator().validate(json)).toMatchObject({ valid: true })
  const methods = Object.values(json.paths as Record<string, Record<string, { requestBody?: object }>>)
  for (const [method, { requestBody }] of methods.flatMap(Object.entries<{ requestBody?: object }>)) {
    expect(method).toBe(requestBody ? 'post' : 'get')
  }
})

test('a store that cannot list, and policies that are not there, are problems with a sentence', async () => {
  const { decide, reset } = memoryStore()
  const store = { decide, reset } as Store
  const server = await (APPS.Koa as StartApp)({ store, authorize })
  open.push(() => closed(server))
  const port = portOf(server)
  const expected: [string, object, number, RegExp][] = [
    ['blocks', {}, 501, /cannot list its blocks/],
    ['block', { identity: IP, for: '1h' }, 501, /cannot list its blocks/],
    ['unblock', { identity: IP }, 501, /cannot list its blocks/],
    ['list', { list: 'vip' }, 501, /has no lists/],
    ['list/add', { list: 'vip', identity: IP }, 501, /has no lists/],
    ['offenders', { policy: 'gone' }, 501, /counts no refusals/],
    ['changes', {}, 501, /keeps no log of changes/],
    ['forget', { identity: IP, confirmed: true }, 501, /cannot forget/],
    ['identity', { identity: IP, search: true }, 501, /cannot search its keys/],
    ['reset', { identity: IP }, 404, /counts such an identity/],
    ['overrides', { policy: 'gone' }, 404, /no such document/],
    ['versions', {}, 404, /no such document/],
  ]
  for (const [path, body, status, detail] of expected) {
    const answer = await ask(port, `/sluice/api/${path}`, { headers: withBody(port), body })
    expect({ path, status: answer.status }).toEqual({ path, status })
    expect(answer.json.detail).toMatch(detail)
  }
  for (const path of ['about', 'policies', 'refusals']) {
    expect((await ask(port, `/sluice/api/${path}`, { headers: asOperator(port) })).status).toBe(200)
  }
  for (const path of ['identity', 'why']) {
    const { json } = await ask(port, `/sluice/api/${path}`, { headers: withBody(port), body: { identity: IP } })
    expect(json.blocks).toEqual([])
  }
  const answer = await ask(port, '/sluice/api/reset', {
    headers: withBody(port),
    body: { identity: IP, limiter: 'gone' },
  })
  expect(answer).toMatchObject({ status: 404, json: { detail: expect.stringMatching(/the console was given none/) } })
})

test('a middleware of Koa may set a cookie after the console has answered', async () => {
  const app = new Koa()
  const failures: unknown[] = []
  app.on('error', (error) => failures.push(error))
  app.use(async (ctx, next) => {
    await next()
    ctx.cookies.set('seen', 'yes')
  })
  const handler = onKoa({ path: '/sluice', store: memoryStore(), authorize: (ctx) => authorize(ctx.req) })
  app.use(handler)
  const server = createServer(app.callback())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(
    () => closed(server),
    () => handler.close(),
  )
  const port = portOf(server)
  expect((await ask(port, '/sluice/api/about', { headers: asOperator(port) })).status).toBe(200)
  expect(failures).toEqual([])
})

test('an authorize that throws warns once a minute', async () => {
  const fails = () => {
    throw new Error('the directory is away')
  }
  const server = await (APPS.Koa as StartApp)({ store: memoryStore(), authorize: fails })
  const warnings: string[] = []
  const note = ({ message }: Error) => warnings.push(message)
  process.on('warning', note)
  open.push(
    () => closed(server),
    () => process.off('warning', note),
  )
  const port = portOf(server)
  for (let i = 0; i < 3; i++) {
    expect((await ask(port, '/sluice/api/about', { headers: asOperator(port) })).status).toBe(403)
  }
  await until('it is told', async () => warnings.length > 0)
  expect(warnings).toEqual(['console: authorize failed: the directory is away'])
})

test('refusals are recorded until the last console, and the application, have ended it', async () => {
  const store = memoryStore()
  const mail = createLimiter({ name: 'mail', store, limit: 1, window: '1h' })
  const opened = async () => {
    const server = await (APPS.Koa as StartApp)({ store, authorize })
    open.push(() => closed(server))
    return server
  }
  const refuse = async (name: string) => {
    for (let i = 0; i < 2; i++) await mail.consume(name)
  }
  const [first, second] = [await opened(), await opened()]
  const stop = recordRefusals(store)
  await closed(first)
  await refuse('after the first console')
  stop()
  stop()
  await refuse('after the application')
  const other = recordRefusals(store)
  await closed(second)
  await refuse('after both consoles')
  other()
  await refuse('after all')
  const port = portOf(await opened())
  const { json } = await ask(port, '/sluice/api/refusals', { headers: asOperator(port) })
  const names = json.refusals.flatMap(({ identities }: { identities: string[] }) => identities)
  expect(names.sort()).toEqual(['key=after both consoles', 'key=after the application', 'key=after the first console'])
})

test('searches the keys of Redis only where the request says so', async () => {
  const prefix = randomUUID()
  const other = createLimiter({ name: 'elsewhere', store: storeOn(prefix), limit: 5, window: '1h' })
  await other.consume('ann')
  const server = await (APPS.Koa as StartApp)({ store: storeOn(prefix), authorize })
  open.push(() => closed(server))
  const port = portOf(server)
  const identity = { kind: 'key', value: 'ann' }
  const asked = async (path: string, body: object) =>
    (await ask(port, `/sluice/api${path}`, { headers: withBody(port), body })).json
  expect(await asked('/identity', { identity })).not.toHaveProperty('stored')
  expect((await asked('/identity', { identity, search: true })).stored.limits).toMatchObject([
    { policy: 'elsewhere', used: 1, remaining: 4 },
  ])
  expect(await asked('/reset', { identity, search: true, limiter: 'elswhere' })).toMatchObject({ status: 404 })
  const elsewhere = { identity, search: true, limiter: 'elsewhere' }
  expect((await asked('/reset', elsewhere)).reset).toMatchObject([{ limiter: 'elsewhere' }])
  expect((await other.consume('ann')).remaining).toBe(4)
  expect((await asked('/reset', { identity, search: true })).reset).toMatchObject([{ limiter: 'elsewhere' }])
  await until('the other process sees it', async () => (await other.peek('ann')).remaining === 5)
})

function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(() => resolve()))
}
