import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { List, Store, Verdict } from '@sluice/core'
import { list, memoryStore } from '@sluice/core'
import * as expressAdapter from '@sluice/express'
import * as fastifyAdapter from '@sluice/fastify'
import * as koaAdapter from '@sluice/koa'
import { type Policies, policies } from '@sluice/policies'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'policies-'))
const open: Server[] = []
const sources: Policies[] = []

afterEach(async () => {
  // One that goes on watching would warn in other tests of this process.
  for (const loaded of sources.splice(0)) await loaded.close()
  await Promise.all(open.splice(0).map((server) => new Promise((resolve) => server.close(resolve))))
})

type App = (policies: Policies, store: Store, inCode: { deny?: List }) => Promise<Server>

const APPS: Readonly<Record<string, App>> = {
  async Express(loaded, store, inCode) {
    const app = express()
    app.use(expressAdapter.rateLimit({ policies: loaded, store, ...inCode }))
    app.use((req, res) => void res.json(req.rateLimit ?? {}))
    return createServer(app)
  },
  async Koa(loaded, store, inCode) {
    const app = new Koa()
    app.use(koaAdapter.rateLimit({ policies: loaded, store, ...inCode }))
    app.use((ctx) => {
      ctx.body = ctx.state.rateLimit ?? {}
    })
    return createServer(app.callback())
  },
  async Fastify(loaded, store, inCode) {
    const app = fastify()
    await app.register(fastifyAdapter.rateLimit, { policies: loaded, store, ...inCode })
    app.all('/*', async (request) => request.rateLimit ?? {})
    await app.ready()
    return app.server
  },
}

async function started(
  make: App,
  loaded: Policies,
  store = memoryStore(),
  inCode: { deny?: List } = {},
): Promise<(path: string, init?: RequestInit) => Promise<Response>> {
  sources.push(loaded)
  const server = await make(loaded, store, inCode)
  open.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return (path, init) =>
    fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers: { connection: 'close', ...init?.headers } })
}

const DOCUMENT = `
version: 1
policies:
  all:
    limits:
      - { limit: 5, window: 1m }
  search:
    match: { methods: [GET], paths: [/search, '/api/search/**'] }
    limits:
      - { name: minute, limit: 2, window: 1m, algorithm: fixedWindow, anchor: first-request }
`

describe.each(Object.keys(APPS))('policies of a file in %s', (framework) => {
  const make = APPS[framework] as App
  let file: string
  beforeAll(() => {
    file = join(folder, `${framework}.yaml`)
    writeFileSync(file, DOCUMENT)
    return () => rmSync(file)
  })

  test('the policies that match a request are charged together or not at all', async () => {
    const send = await started(make, await policies.from({ file }))
    expect((await send('/search')).status).toBe(200)
    expect((await send('/api/search/of/it')).status).toBe(200)
    const refused = await send('/Search/')
    expect(refused.status).toBe(429)
    expect(refused.headers.get('ratelimit-policy')).toContain('search-minute')
    // The refusal charged the other policy nothing: 3 of its 5 are left.
    for (let n = 0; n < 3; n++) expect((await send('/other')).status).toBe(200)
    expect((await send('/other')).status).toBe(429)
  })

  test('a policy applies to its methods only', async () => {
    const send = await started(make, await policies.from({ file }))
    const verdict = (await (await send('/search', { method: 'POST' })).json()) as Verdict
    expect(verdict.limits.map(({ name }) => name)).toEqual(['all'])
  })

  test('a changed document is in force with the next request', async () => {
    const loaded = await policies.from({ file })
    const send = await started(make, loaded)
    for (let n = 0; n < 5; n++) expect((await send('/')).status).toBe(200)
    expect((await send('/')).status).toBe(429)
    writeFileSync(file, DOCUMENT.replace('limit: 5', 'limit: 7'))
    await loaded.reload()
    expect((await send('/')).status).toBe(200)
    writeFileSync(file, DOCUMENT)
  })

  test('an empty segment is the value of a parameter where the router takes it for one', async () => {
    const send = await started(
      make,
      await policies.from({
        object: {
          version: 1,
          policies: {
            user: { match: { paths: ['/users/:id', '/users/:id/x'] }, limits: [{ limit: 1, window: '1m' }] },
          },
        },
      }),
    )
    expect((await send('/users//x')).status).toBe(200)
    for (const path of ['/users/', '/users//', '/users//x', '/users//x/', '/USERS//x', '/users/1//x', '//users/1'])
      expect([path, (await send(path)).status]).toEqual([path, 429])
  })

  test('a request that matches no policy is not limited', async () => {
    const loaded = await policies.from({
      object: { version: 1, policies: { one: { match: { paths: ['/one'] }, limits: [{ limit: 1, window: '1m' }] } } },
    })
    const send = await started(make, loaded)
    for (let n = 0; n < 3; n++) {
      const response = await send('/two')
      expect(response.status).toBe(200)
      expect(response.headers.get('ratelimit')).toBeNull()
    }
  })

  test('a policy that counts failures is refunded for successes, and the others are not', async () => {
    const loaded = await policies.from({
      object: {
        version: 1,
        policies: {
          all: { limits: [{ limit: 4, window: '1m' }] },
          failures: { count: { only: 'failure' }, limits: [{ limit: 1, window: '1m' }] },
        },
      },
    })
    const send = await started(make, loaded)
    for (let n = 0; n < 4; n++) expect((await send('/')).status).toBe(200)
    expect((await send('/')).status).toBe(429)
  })

  test('when a later policy refuses, earlier ones are refunded, and headers report both', async () => {
    const loaded = await policies.from({
      object: {
        version: 1,
        policies: {
          all: { limits: [{ limit: 5, window: '1m' }] },
          costly: { match: { paths: ['/costly'] }, cost: 2, limits: [{ limit: 4, window: '1m' }] },
        },
      },
    })
    const send = await started(make, loaded)
    for (let n = 0; n < 2; n++) expect((await send('/costly')).status).toBe(200)
    const refused = await send('/costly')
    expect(refused.status).toBe(429)
    expect(refused.headers.get('ratelimit-policy')).toMatch(/"all".*"costly"/)
    for (let n = 0; n < 3; n++) expect((await send('/')).status).toBe(200)
    expect((await send('/')).status).toBe(429)
  })

  test('a policy in report mode refuses no request, and counts', async () => {
    const loaded = await policies.from({
      object: {
        version: 1,
        policies: {
          tried: { enforce: { mode: 'report' }, limits: [{ limit: 1, window: '1m' }] },
          all: { limits: [{ limit: 3, window: '1m' }] },
        },
      },
    })
    const send = await started(make, loaded)
    for (let n = 0; n < 3; n++) expect((await send('/')).status).toBe(200)
    expect((await send('/')).status).toBe(429)
  })

  test('a policy does not limit clients that it allows, and refuses those that it denies', async () => {
    const object = (lists: object) => ({
      version: 1,
      policies: {
        all: { limits: [{ limit: 2, window: '1m' }] },
        listed: { ...lists, limits: [{ limit: 1, window: '1m' }] },
      },
    })
    const allowed = await started(make, await policies.from({ object: object({ allow: { ip: ['127.0.0.0/8'] } }) }))
    expect((await allowed('/')).status).toBe(200)
    expect((await allowed('/')).status).toBe(200)
    expect((await allowed('/')).status).toBe(429)
    const denied = await started(make, await policies.from({ object: object({ deny: { ip: ['127.0.0.1'] } }) }))
    expect((await denied('/')).status).toBe(403)
    const store = memoryStore()
    const listed = await started(make, await policies.from({ object: object({ denyLists: ['abusers'] }) }), store)
    expect((await listed('/')).status).toBe(200)
    await store.list('abusers').add({ ip: '127.0.0.1' })
    expect((await listed('/')).status).toBe(403)
  })

  test('a deny list in code refuses its clients also where a policy has a list of its own', async () => {
    const object = {
      version: 1,
      policies: { listed: { deny: { ip: ['192.0.2.7'] }, limits: [{ limit: 1, window: '1m' }] } },
    }
    const deny = list({ ip: ['127.0.0.1'] })
    const send = await started(make, await policies.from({ object }), memoryStore(), { deny })
    expect((await send('/')).status).toBe(403)
  })

  test('a policy for users can skip anonymous requests', async () => {
    const loaded = await policies.from({
      object: {
        version: 1,
        policies: { users: { key: 'user', anonymous: 'skip', limits: [{ limit: 1, window: '1m' }] } },
      },
      keys: { user: (_request, context) => context.header('x-user') },
    })
    const send = await started(make, loaded)
    for (let n = 0; n < 2; n++) expect((await send('/')).status).toBe(200)
    expect((await send('/', { headers: { 'x-user': 'ann' } })).status).toBe(200)
    expect((await send('/', { headers: { 'x-user': 'ann' } })).status).toBe(429)
    expect((await send('/', { headers: { 'x-user': 'bob' } })).status).toBe(200)
  })

  test('an override applies to its client', async () => {
    const loaded = await policies.from({
      object: {
        version: 1,
        policies: { all: { limits: [{ limit: 1, window: '1m' }] } },
        overrides: [{ policy: 'all', range: '127.0.0.0/8', limits: [{ limit: 3 }] }],
      },
    })
    const send = await started(make, loaded)
    for (let n = 0; n < 3; n++) expect((await send('/')).status).toBe(200)
    expect((await send('/')).status).toBe(429)
  })
})
