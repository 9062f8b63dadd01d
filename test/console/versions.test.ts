import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'
import { memoryStore, redisStore } from '@sluice/core'
import { type Policies, policies, RedisDocuments } from '@sluice/policies'
import { Redis } from 'ioredis'
import { beforeAll, describe, expect, test } from 'vitest'
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

const start = APPS.Koa as StartApp
const textOf = (limit: number, more = '') =>
  `{ version: 1, policies: { api: { key: user, limits: [{ limit: ${limit}, window: 1h }]${more} } } }`
const keys = { user: (request: { user?: string }) => request.user }

function clientOf(): Redis {
  const client = new Redis(redis.port)
  open.push(() => client.disconnect())
  return client
}

/** A document of these texts in Redis, and what consoles on it need. */
async function saved(...texts: string[]) {
  const prefix = `${randomUUID()}:`
  const client = clientOf()
  const documents = new RedisDocuments((command, ...args) => client.call(command, ...args), 'default', prefix)
  for (const [i, text] of texts.entries()) await documents.save(text, i, `author-${i + 1}`)
  const store = redisStore(client, { prefix, timeout: 10_000 })
  open.push(() => store.close())
  return { prefix, client, documents, store }
}

async function loaded(prefix: string, more: object = {}): Promise<Policies> {
  const made = await policies.from({ redis: clientOf(), prefix, keys, ...more })
  open.push(() => made.close())
  return made
}

async function served(parts: object, credential = 'ann') {
  const server = await start({ authorize, ...parts } as never)
  open.push(() => closed(server))
  const port = portOf(server)
  const post = (path: string, body: object) =>
    ask(port, `/sluice/api/${path}`, { headers: withBody(port, credential), body })
  return Object.assign(post, { port })
}

const limitIn = async (of: Policies) => (await of.explain({ path: '/', request: { user: 'ann' } }))[0]?.limits[0]?.limit

describe('versions of a document in Redis', () => {
  test('are listed with authors and differences, planned, and put in force again in every process', async () => {
    const { prefix, documents, store } = await saved(textOf(5), textOf(50), textOf(500))
    const [here, there] = [await loaded(prefix, { save: clientOf() }), await loaded(prefix)]
    const post = await served({ store, policies: here })
    const list = (await post('versions', {})).json
    expect(list).toEqual({
      canSave: true,
      versions: [3, 2, 1].map((version) => ({
        version,
        by: `author-${version}`,
        at: expect.any(Number),
        differences: expect.any(Array),
      })),
    })
    expect(list.versions[0].differences).toEqual(['~ policy api', '  - limit: 50', '  + limit: 500'])
    expect(list.versions[2].differences).toEqual(['+ policy api: key: user, limit: 5, window: 1h'])
    expect((await post('rollback/plan', { version: 1 })).json).toEqual({
      version: 1,
      by: 'author-1',
      at: list.versions[2].at,
      expected: 3,
      canSave: true,
      differences: ['~ policy api', '  - limit: 500', '  + limit: 5'],
      carried: [{ policy: 'api', limit: 'api', isKept: true }],
    })
    expect((await post('rollback', { version: 1, expected: 3 })).json).toEqual({ version: 4 })
    expect(await limitIn(here)).toBe(5)
    await until('the other process has it', async () => (await limitIn(there)) === 5)
    expect(await documents.newest()).toMatchObject({ version: 4, text: textOf(5), by: 'ann' })
    expect((await post('changes', {})).json.entries).toMatchObject([
      {
        by: 'ann',
        action: 'rollback',
        before: { document: 'default', version: 3 },
        after: { document: 'default', version: 4, sameAs: 1 },
        state: 'done',
      },
    ])
  })

  test('another version than the operator saw is a conflict, and one that is gone is not found', async () => {
    const { prefix, documents, store } = await saved(...Array.from({ length: 22 }, (_, i) => textOf(i + 1)))
    const post = await served({ store, policies: await loaded(prefix, { save: clientOf() }) })
    const conflict = await post('rollback', { version: 21, expected: 21 })
    expect(conflict).toMatchObject({ status: 409, json: { found: { version: 22 } } })
    expect(conflict.json.detail).toMatch(/expected version 21 to be in force, and version 22 is/)
    expect((await post('rollback', { version: 2, expected: 22 })).status).toBe(404)
    expect((await post('rollback', { version: 23, expected: 22 })).status).toBe(404)
    expect((await post('rollback/plan', { version: 2 })).status).toBe(404)
    // It is in force already.
    expect((await post('rollback', { version: 22, expected: 22 })).json).toEqual({ version: 22 })
    expect(await documents.version()).toBe(22)
    expect((await post('changes', {})).json.entries).toEqual([])
    const { versions } = (await post('versions', {})).json
    expect(versions).toHaveLength(20)
    // The version before the oldest is not known.
    expect(versions.map((each: object) => 'differences' in each)).toEqual([...Array(19).fill(true), false])
  })

  test('a version that this process would not take is not put in force', async () => {
    const broken = 'version: 1\npolicies: { "<b>": [ }'
    const unknown = '{ version: 1, policies: { api: { key: nobody, limits: [{ limit: 5, window: 1h }] } } }'
    const many = `{ version: 1, policies: { ${['a', 'b', 'c', 'd', 'e'].map((name) => `${name}: { limits: [{ limit: 5, window: 1h }] }`)} } }`
    const { prefix, documents, store } = await saved(broken, unknown, textOf(5), many)
    const post = await served({ store, policies: await loaded(prefix, { save: clientOf() }) })
    const refusals: [number, RegExp][] = [
      [1, /^redis:default:2:22: Flow sequence/],
      [2, /nobody/],
      [3, /expected at least half of the/],
    ]
    for (const [version, why] of refusals) {
      const answer = await post('rollback', { version, expected: 4 })
      expect(answer.status).toBe(400)
      expect(answer.json.detail).toMatch(why)
      expectPlain(answer)
      expect((await post('rollback/plan', { version })).json.error).toBe(answer.json.detail)
    }
    const { versions } = (await post('versions', {})).json
    // The text that is no YAML has no differences, and neither has the one after it.
    expect(versions.map((each: object) => 'differences' in each)).toEqual([true, true, false, false])
    expect(await documents.version()).toBe(4)
    expect((await post('changes', {})).json.entries).toEqual([])
  })

  test('hostile names in a document, and entries that are not ours, stay text', async () => {
    const hostile = JSON.stringify({
      version: 1,
      policies: {
        api: {
          description: '</script>\u001b]0;x\u0007\u202e\n~ policy forged',
          key: 'user',
          match: { headers: { 'x-api-key': 'secret-of-a-client' }, paths: ['/<img src=x>'] },
          limits: [{ limit: 5, window: '1h' }],
          deny: { user: ['secret-of-a-client'] },
        },
      },
      overrides: [{ policy: 'api', key: { user: 'secret-of-a-client' }, limits: [{ limit: 7 }] }],
    })
    const { prefix, client, store } = await saved(textOf(5), hostile, textOf(6))
    for (const foreign of ['<script>', '7', 'null', '{"version":"9","text":"x","by":"eve","at":1}', '{"format":2}']) {
      await client.rpush(`${prefix}policies:{default}:versions`, foreign)
    }
    const post = await served({ store, policies: await loaded(prefix, { save: clientOf(), allowShrink: true }) }, 'ann')
    const list = await post('versions', {})
    expect(list.json.versions.map(({ version }: { version: number }) => version)).toEqual([3, 2, 1])
    const plan = await post('rollback/plan', { version: 2 })
    expect(plan.json.differences).toContain('+ overrides of api (1)')
    for (const answer of [list, plan]) {
      expect(answer.status).toBe(200)
      expectPlain(answer)
      expect(answer.text).not.toContain('secret-of')
      expect(answer.text).not.toContain('"~ policy forged')
    }
    expect((await post('rollback', { version: 2, expected: 3 })).json).toEqual({ version: 4 })
    const changes = await post('changes', {})
    expectPlain(changes)
    expect(changes.text).not.toContain('secret-of')
  })

  test('the reason against a version names no client of its document, nor does that of the newest', async () => {
    const top = (more: string) => `${textOf(6).slice(0, -1)}, ${more} }`
    const limits = 'limits: [{ limit: 9 }]'
    const broken: Record<string, RegExp> = {
      [textOf(6, ', deny: { ip: [secret-a] }')]:
        /^redis:default:1:\d+: policies\.api\.deny: expected an address, or a range .*, got a value that is not shown$/,
      [textOf(6, ', match: { headers: { x-secret-a: [b], "secret b": c } }')]:
        /policies\.api\.match\.headers: wrong name: expected the name of a header/,
      [textOf(6, ', allow: { "secret a": [b] }')]: /policies\.api\.allow: /,
      [top(`overrides: [{ policy: api, key: { ip: secret-a }, ${limits} }]`)]:
        /overrides\[0\]\.key: expected an address/,
      [top(`overrides: [{ policy: api, key: secret-a, ${limits} }]`)]:
        /overrides\[0\]\.key: expected one value by its kind/,
      [top(`overrides: [{ policy: api, range: secret-a, ${limits} }]`)]: /overrides\[0\]\.range: /,
      [top(`overrides: [{ policy: api, key: { user: a }, secret-b: c, ${limits} }]`)]: /overrides\[0\]: unknown field/,
      [top(`overrides: [{ policy: api, key: { user: a }, until: secret-c, ${limits} }]`)]:
        /overrides\[0\]\.until: expected a time/,
      [top('overrides: secret-a')]: /overrides: expected an array/,
      [`${textOf(6)} "secret-a"`]: /^redis:default:1:\d+: /,
      'secret-a': /^redis:default:1:1: expected/,
    }
    const texts = Object.keys(broken)
    const { prefix, documents, store } = await saved(...texts, textOf(5))
    const here = await loaded(prefix, { save: clientOf() })
    const post = await served({ store, policies: here })
    const expected = texts.length + 1
    for (const [i, text] of texts.entries()) {
      const plan = await post('rollback/plan', { version: i + 1 })
      expect(plan.json.error).toMatch(broken[text] as RegExp)
      expect(plan.text).not.toContain('secret')
      const answer = await post('rollback', { version: i + 1, expected })
      expect({ status: answer.status, detail: answer.json.detail }).toEqual({ status: 400, detail: plan.json.error })
      expect(answer.text).not.toContain('secret')
    }
    await documents.save(texts[0] as string, expected, 'eve')
    await until('the newest version is refused', () => here.error !== undefined)
    const shown = await ask(post.port, '/sluice/api/policies', { headers: asOperator(post.port) })
    expect(shown.json.documents[0].error).toMatch(/policies\.api\.deny: expected an address/)
    expect(shown.text).not.toContain('secret')
  })

  test('long documents are compared in a thread, and very long ones not at all', async () => {
    const withMany = (count: number) => {
      const overrides = Array.from({ length: count }, (_, i) => ({
        policy: 'api',
        key: { user: `u${i}` },
        limits: [{ limit: 7 }],
      }))
      return `${textOf(5).slice(0, -1)}, overrides: ${JSON.stringify(overrides)} }`
    }
    const { prefix, store } = await saved(
      textOf(5),
      `${textOf(6)} #${'x'.repeat(2 ** 21)}`,
      withMany(400),
      withMany(300),
    )
    const post = await served({ store, policies: await loaded(prefix, { save: clientOf() }) })
    const [fourth, third, second, first] = (await post('versions', {})).json.versions
    expect(fourth.differences).toEqual(['~ overrides of api (400 before, now 300)', '  - limit: 7 (100 overrides)'])
    for (const each of [third, second, first]) expect(each).not.toHaveProperty('differences')
    const plan = (await post('rollback/plan', { version: 3 })).json
    expect(plan.differences).toHaveLength(2)
    expect(plan).not.toHaveProperty('carried')
  })

  test('a reader, and a console that is read only, put nothing in force', async () => {
    const { prefix, documents, store } = await saved(textOf(5), textOf(6))
    const made = await loaded(prefix, { save: clientOf() })
    for (const [credential, readOnly] of [
      ['bob', false],
      ['ann', true],
      ['nobody', false],
    ] as const) {
      const post = await served({ store, policies: made, readOnly }, credential)
      expect((await post('rollback', { version: 1, expected: 2 })).status).toBe(403)
      expect((await post('versions', {})).status).toBe(credential === 'nobody' ? 403 : 200)
    }
    expect(await documents.version()).toBe(2)
  })
})

test('a connection of the document that does not answer is a problem with a sentence', async () => {
  const own = await startRedis()
  const client = new Redis(own.port)
  client.on('error', () => {})
  open.push(
    () => own.stop(),
    () => own.kill('SIGCONT'),
    () => client.disconnect(),
  )
  await new RedisDocuments((command, ...args) => client.call(command, ...args), 'default', 'sluice:').save(
    textOf(5),
    0,
    '',
  )
  const made = await policies.from({ redis: client, save: client, keys })
  open.push(() => made.close())
  const post = await served({ store: memoryStore(), policies: made })
  own.kill('SIGSTOP')
  const calls: [string, object][] = [
    ['versions', {}],
    ['rollback/plan', { version: 1 }],
    ['rollback', { version: 1, expected: 1 }],
    ['overrides', {}],
  ]
  for (const answer of await Promise.all(calls.map(([path, body]) => post(path, body)))) {
    expect(answer).toMatchObject({
      status: 503,
      json: { detail: expect.stringMatching(/has not answered within 10 s/) },
    })
    expectPlain(answer)
  }
})

test('a connection of a document that may not run a command is told so, as Redis says it', async () => {
  const { prefix, client } = await saved(textOf(5), textOf(6))
  await client.call('ACL', 'SETUSER', 'half', 'on', '>secret', '~*', '+@all', '-lrange', '-eval')
  open.push(() => client.call('ACL', 'DELUSER', 'half'))
  const half = new Redis(redis.port, { username: 'half', password: 'secret' })
  open.push(() => half.disconnect())
  const made = await policies.from({ redis: half, save: half, prefix, keys })
  open.push(() => made.close())
  const post = await served({ store: memoryStore(), policies: made })
  for (const answer of [await post('versions', {}), await post('rollback', { version: 1, expected: 2 })]) {
    expect(answer).toMatchObject({ status: 503, json: { detail: expect.stringMatching(/may not run.*NOPERM/) } })
    expectPlain(answer)
  }
})

test('documents that the console cannot write are answered with what to do', async () => {
  const { prefix, store } = await saved(textOf(5), textOf(6))
  const post = await served({ store, policies: await loaded(prefix) })
  expect((await post('versions', {})).json).toMatchObject({
    canSave: false,
    versions: [{ version: 2 }, { version: 1 }],
  })
  expect((await post('rollback/plan', { version: 1 })).json).toMatchObject({ canSave: false, expected: 2 })
  const without = await post('rollback', { version: 1, expected: 2 })
  expect(without).toMatchObject({
    status: 501,
    json: { detail: expect.stringMatching(/save, or use sluice rollback/) },
  })
  const object = await policies.from({
    object: { version: 1, policies: { all: { limits: [{ limit: 5, window: '1h' }] } } },
  })
  const inCode = await served({ store: memoryStore(), policies: object })
  for (const [path, body] of [
    ['versions', {}],
    ['rollback/plan', { version: 1 }],
    ['rollback', { version: 1, expected: 2 }],
  ] as const) {
    const answer = await inCode(path, body)
    expect(answer).toMatchObject({
      status: 501,
      json: { detail: expect.stringMatching(/in a file or in code: change it there/) },
    })
  }
  expect((await (await served({ store }))('versions', {})).status).toBe(404)
})

function expectPlain({ text }: Answer): void {
  expect(text).toMatch(/^[ -~]*$/)
  expect(text).not.toMatch(/[<>&']/)
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(() => resolve()))
}
