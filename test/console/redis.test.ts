import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'
import { redisStore } from '@sluice/core'
import { type Policies, policies, RedisDocuments } from '@sluice/policies'
import { Redis } from 'ioredis'
import { beforeAll, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'
import { type Answer, APPS, ask, asOperator, authorize, portOf, type StartApp, withBody } from './support.js'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
  return () => redis.stop()
})

const open = closedAfterEach()

const IP = { kind: 'ip', value: '192.0.2.7' }
const BLOCK = { identity: IP, for: '1h' }

function clientOf(options: object = {}): Redis {
  const client = new Redis(redis.port, options)
  client.on('error', () => {})
  open.push(() => client.disconnect())
  return client
}

function storeOn(prefix: string, options: object = {}) {
  const warnings = { SLUICE_STORE_UNAVAILABLE: false }
  const store = redisStore(clientOf(options), { prefix, timeout: 10_000, warnings })
  open.push(() => store.close())
  return store
}

/** A store of a user of Redis with these permissions. */
async function storeOfUser(prefix: string, ...rules: string[]) {
  const username = randomUUID()
  await redis.call('ACL', 'SETUSER', username, 'reset', 'on', '>secret', '+@all', '&*', '%R~*', ...rules)
  return storeOn(prefix, { username, password: 'secret' })
}

async function served(parts: object) {
  const server = await (APPS.Koa as StartApp)({ authorize, ...parts } as never)
  open.push(() => closed(server))
  const port = portOf(server)
  const post = (path: string, body: object) => ask(port, `/sluice/api/${path}`, { headers: withBody(port), body })
  const get = (path: string) => ask(port, `/sluice/api/${path}`, { headers: asOperator(port) })
  return { post, get }
}

/** A problem document with a sentence, without anything of a stack. */
function expectProblem({ status, headers, text, json }: Answer): void {
  expect(status).toBeGreaterThanOrEqual(400)
  expect(headers['content-type']).toMatch(/^application\/problem\+json/)
  expect(json).toMatchObject({ status, detail: expect.stringMatching(/^\S.* .*\S$/) })
  expect(text).not.toMatch(/node_modules|\.[jt]s:\d|\bat \S+ \(|NOPERM|WRONGTYPE/)
}

test('a change whose entry cannot be written is not made', async () => {
  const prefix = `${randomUUID()}:`
  // Every key but that of the entries.
  const { post } = await served({ store: await storeOfUser(prefix, `~${prefix}v1:[^c]*`) })
  expectProblem(await post('block', BLOCK))
  const other = storeOn(prefix)
  expect((await other.blocks.list()).entries).toEqual([])
  expect((await other.changes.list()).entries).toEqual([])
})

test('a change that fails after its entry is one that failed', async () => {
  const prefix = `${randomUUID()}:`
  const { post } = await served({ store: await storeOfUser(prefix, `~${prefix}v1:changes`) })
  expectProblem(await post('block', BLOCK))
  const other = storeOn(prefix)
  expect((await other.blocks.list()).entries).toEqual([])
  expect((await other.changes.list()).entries).toMatchObject([{ by: 'ann', action: 'block', state: 'failed' }])
})

test('a change that fails, and whose end cannot be noted either, leaves an entry of one that has begun', async () => {
  const prefix = `${randomUUID()}:`
  // An entry is replaced by ZREM, and added without it.
  const { post } = await served({ store: await storeOfUser(prefix, `~${prefix}v1:changes`, '-zrem') })
  expectProblem(await post('block', BLOCK))
  const other = storeOn(prefix)
  expect((await other.blocks.list()).entries).toEqual([])
  expect((await other.changes.list()).entries).toMatchObject([{ by: 'ann', action: 'block', state: 'begun' }])
})

test('an override until a date is in force in another process, and ends at its instant in both', async () => {
  const prefix = `${randomUUID()}:`
  const client = clientOf()
  const documents = new RedisDocuments((command, ...args) => client.call(command, ...args), 'default', prefix)
  await documents.save('{ version: 1, policies: { api: { key: user, limits: [{ limit: 5, window: 1h }] } } }', 0, 'me')
  const loaded = async (more: object) => {
    const user = (request: { user?: string }) => request.user
    const made = await policies.from({ redis: clientOf(), prefix, keys: { user }, ...more })
    open.push(() => made.close())
    return made
  }
  const [here, there] = [await loaded({ save: client }), await loaded({})]
  const limitIn = async (of: Policies, user = 'ann') =>
    (await of.explain({ path: '/', request: { user } }))[0]?.limits[0]?.limit
  const { post } = await served({ store: storeOn(prefix), policies: here })
  const identity = { kind: 'user', value: 'ann' }
  const end = Date.now() + 5000
  const set = await post('override', { policy: 'api', identity, limits: [{ limit: 50 }], until: end })
  expect(set).toMatchObject({ status: 200, json: { override: { until: end } } })
  expect(await limitIn(here)).toBe(50)
  await until('the other process has it', async () => (await limitIn(there)) === 50)
  expect(await limitIn(there, 'bob')).toBe(5)
  for (const each of [here, there]) {
    await until('it ends', async () => (await limitIn(each)) === 5)
    expect(Date.now()).toBeGreaterThanOrEqual(end)
  }
  expect((await post('overrides', {})).json).toEqual({ entries: [] })
  expect((await post('identity', { identity })).json.limits).toMatchObject([{ limits: [{ limit: 5 }] }])
})

test('entries of another version among those of changes are left out, and hide none', async () => {
  const prefix = `${randomUUID()}:`
  const store = storeOn(prefix)
  const { post } = await served({ store })
  const key = `${prefix}v1:changes`
  const foreign = [
    'x2:1:{"by":"eve","action":"block"}',
    'd3:1:{"who":"eve"}',
    'd4:1:[1',
    'd5:1:null',
    'd6:1:{"by":"eve","action":"block","identity":{"user":"bob"}}',
    'd7:1:{"by":"eve","action":"block","policy":["mail"]}',
    '{"format":2,"by":"eve"}',
    '<script>eve</script>',
  ]
  await post('block', BLOCK)
  for (const [n, member] of foreign.entries()) await redis.call('ZADD', key, n + 2, member)
  await post('unblock', { identity: IP })
  const found: string[] = []
  let cursor: string | undefined
  do {
    const { status, json, text } = await post('changes', { max: 2, ...(cursor !== undefined && { cursor }) })
    expect(status).toBe(200)
    expect(text).not.toContain('eve')
    found.push(...json.entries.map(({ action }: { action: string }) => action))
    cursor = json.cursor
  } while (cursor !== undefined)
  expect(found).toEqual(['unblock', 'block'])
  // Those before them are erased, too.
  await store.forget({ ip: IP.value })
  expect(String(await redis.call('ZRANGE', key, 0, -1))).not.toContain(IP.value)
})

test('refusals of another version beside those of this one are left out', async () => {
  const prefix = `${randomUUID()}:`
  const { get } = await served({ store: storeOn(prefix) })
  const start = `${prefix}v1:{console}:`
  const at = Date.now()
  const right = { at, policy: 'mail', reason: 'limited', identities: ['key=ann'] }
  const wrong = [
    null,
    1,
    'text',
    [],
    { ...right, at: 'now' },
    { ...right, at: 1e300 },
    { ...right, policy: { name: 'mail' } },
    { ...right, reason: undefined },
    { ...right, reason: ['limited'] },
    { ...right, limit: 1 },
    { ...right, path: ['/'] },
    { ...right, identities: 'key=ann' },
    { ...right, identities: [{ kind: 'key', value: 'ann' }] },
  ]
  const texts = [JSON.stringify([...wrong, right]), '{"format":2,"refusals":[]}', '[{', '<script>', '\u{FFFF}']
  for (const [n, text] of texts.entries()) {
    await redis.call('SET', `${start}refusals:p${n}`, text)
    await redis.call('ZADD', `${start}processes`, at, `p${n}`)
  }
  // One that is gone.
  await redis.call('ZADD', `${start}processes`, at, 'gone')
  const { status, json } = await get('refusals')
  expect(status).toBe(200)
  expect(json.refusals).toEqual([right])
})

test('keys of another type are a problem with a sentence', async () => {
  const prefix = `${randomUUID()}:`
  const { get, post } = await served({ store: storeOn(prefix) })
  await redis.call('SET', `${prefix}v1:changes`, 'x')
  expectProblem(await post('changes', {}))
  expectProblem(await post('block', BLOCK))
  await redis.call('LPUSH', `${prefix}v1:{console}:processes`, 'x')
  expectProblem(await get('refusals'))
  expect((await storeOn(prefix).blocks.list()).entries).toEqual([])
})

function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(() => resolve()))
}
