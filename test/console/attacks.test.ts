import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { connect } from 'node:net'
import { consoleFor as onExpress } from '@sluice/console/express'
import { createLimiter, keyed, type ManagedStore, memoryStore, redisStore, slidingLog } from '@sluice/core'
import { BANS } from '@sluice/core/store'
import compression from 'compression'
import cors from 'cors'
import express from 'express'
import helmet from 'helmet'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { startRedis } from '../support/redis-server.js'
import { withMembers } from '../support/with-members.js'
import {
  type Answer,
  APPS,
  ask,
  asOperator,
  authorize,
  type Before,
  portOf,
  type StartApp,
  withBody,
} from './support.js'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

interface Given {
  readonly store?: ManagedStore
  readonly before?: readonly Before[]
  readonly authorize?: (request: IncomingMessage) => unknown
  readonly hosts?: readonly string[]
  readonly readOnly?: boolean
}

async function served(start: StartApp, { store = memoryStore({ offenders: true }), before = [], ...more }: Given = {}) {
  const mail = createLimiter({ name: 'mail', store, limit: 1, window: '1h' })
  const server = await start({ store, limiters: [mail], lists: ['vip'], authorize, ...more }, before)
  servers.push(server)
  return { store, mail, port: portOf(server) }
}

const IP = { kind: 'ip', value: '192.0.2.7' }
const OVERRIDE = { policy: 'api', identity: IP, limits: [{ limit: 5 }], until: '2090-01-01T00:00:00Z' }
/** A body that each route takes. */
const BODIES: Readonly<Record<string, object>> = {
  '/api/identity': { identity: IP },
  '/api/why': { identity: IP },
  '/api/find': { text: '192.0.2.7' },
  '/api/suggestions': { text: '192' },
  '/api/reset': { identity: IP },
  '/api/forget': { identity: IP, confirmed: true },
  '/api/blocks': {},
  '/api/block': { identity: IP, for: '1h' },
  '/api/block/plan': { identity: IP },
  '/api/unblock': { identity: IP },
  '/api/list': { list: 'vip' },
  '/api/list/add': { list: 'vip', identity: IP },
  '/api/list/remove': { list: 'vip', identity: IP },
  '/api/offenders': { policy: 'mail' },
  '/api/id': { identity: IP },
  '/api/client': { id: 'pQ5c0nqT1zE7vYbX' },
  '/api/names': { identities: [{ kind: 'user', value: '42' }] },
  '/api/changes': {},
  '/api/figures/history': { from: 0, to: 0, step: 'hour' },
  '/api/traffic': { from: 0, to: 60_000 },
  '/api/tail': {},
  '/api/overrides': {},
  '/api/override/plan': OVERRIDE,
  '/api/override': OVERRIDE,
  '/api/override/remove': { policy: 'api', identity: IP },
  '/api/document': {},
  '/api/versions': {},
  '/api/rollback/plan': { version: 1 },
  '/api/rollback': { version: 1, expected: 2 },
}

interface Operation {
  readonly path: string
  readonly may: 'read' | 'act'
  ask(headers: (port: number) => Record<string, string>): Promise<Answer>
}

/** Every route of the OpenAPI document. */
async function operationsOf(port: number): Promise<readonly Operation[]> {
  const { json } = await ask(port, '/sluice/api/openapi.json', { headers: asOperator(port) })
  return Object.entries(json.paths as Record<string, Record<string, { 'x-sluice-may': 'read' | 'act' }>>).flatMap(
    ([path, methods]) =>
      Object.entries(methods).map(([method, { 'x-sluice-may': may }]) => {
        const body = method === 'post' ? BODIES[path] : undefined
        if (method === 'post' && !body) throw new Error(`${path} has no body here`)
        return { path, may, ask: (headers) => ask(port, `/sluice${path}`, { headers: headers(port), body }) }
      }),
  )
}

const changesNothing = async (store: ManagedStore) => {
  expect((await store.blocks?.list())?.entries).toEqual([])
  expect((await store.list?.('vip').list())?.entries).toEqual([])
}

/** A problem document with a sentence, and nothing of the program. */
function expectProblem({ status, headers, json, text }: Answer, expected: number): void {
  expect({ status, type: headers['content-type'] }).toEqual({
    status: expected,
    type: 'application/problem+json; charset=utf-8',
  })
  expect(json).toMatchObject({ status: expected, detail: expect.any(String) })
  expect(text).not.toMatch(/\bat .*:\d+:\d+|node_modules|\.ts\b|\.js\b/)
}

const jsonParser: Before = express.json({ limit: '1mb' }) as never
Object.defineProperty(jsonParser, 'name', { value: 'jsonParser' })
/** As applications have it. */
const STACK: readonly Before[] = [
  helmet({ crossOriginResourcePolicy: { policy: 'cross-origin' } }) as Before,
  compression({ threshold: 0 }) as unknown as Before,
  cors({ origin: true, credentials: true }) as Before,
  jsonParser,
]

describe.each(Object.entries(APPS))('attacks on the console with %s', (_name, start) => {
  test('nothing is answered without an operator', async () => {
    const { port, store } = await served(start)
    for (const operation of await operationsOf(port)) {
      expectProblem(await operation.ask((to) => withBody(to, 'nobody')), 403)
    }
    await changesNothing(store)
  })

  test('an authorize that fails, or returns anything but an operator, refuses', async () => {
    const returned: Record<string, () => unknown> = {
      throws: () => {
        throw new Error('secret-of-the-application')
      },
      rejects: () => Promise.reject(new Error('secret-of-the-application')),
      true: () => true,
      text: () => 'act',
      nothing: () => undefined,
      'no name': () => ({ may: 'act' }),
      'another right': () => ({ name: 'ann', may: 'everything' }),
      'a long name': () => ({ name: 'x'.repeat(201), may: 'act' }),
      'a proxy': () =>
        new Proxy(
          {},
          {
            get: () => {
              throw new Error('no')
            },
          },
        ),
    }
    let of = ''
    const { port, store } = await served(start, { authorize: () => returned[of]?.() })
    for (of of Object.keys(returned)) {
      const answer = await ask(port, '/sluice/api/block', { headers: withBody(port), body: BODIES['/api/block'] })
      expectProblem(answer, 403)
      expect(answer.text).not.toContain('secret-of')
      expectProblem(await ask(port, '/sluice/api/about', { headers: asOperator(port) }), 403)
    }
    await changesNothing(store)
  })

  test('a reader, and a console that is read only, change nothing on any route', async () => {
    for (const [credential, readOnly] of [
      ['bob', false],
      ['ann', true],
    ] as const) {
      const { port, store } = await served(start, { readOnly })
      for (const operation of await operationsOf(port)) {
        const answer = await operation.ask((to) => withBody(to, credential))
        if (operation.may === 'act') expectProblem(answer, 403)
        // Without a document, and without a log of changes.
        else expect([200, 404, 501]).toContain(answer.status)
      }
      await changesNothing(store)
    }
  })

  test('pages of other origins neither change nor read anything, behind cors that lets every origin in', async () => {
    const { port, store } = await served(start, { before: STACK })
    const evil = { ...withBody(port), origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
    const { origin: _o, 'sec-fetch-site': _s, ...bare } = withBody(port)
    const { 'sluice-console': _h, ...withoutHeader } = withBody(port)
    const attempts: Record<string, Record<string, string>> = {
      'with the header': evil,
      'a sibling host': { ...withBody(port), 'sec-fetch-site': 'same-site' },
      'without Sec-Fetch-Site': { ...bare, origin: 'https://evil.example' },
      'another port': { ...bare, origin: `http://127.0.0.1:${port + 1}` },
      'a sandboxed frame': { ...bare, origin: 'null' },
      'a link': { ...bare, 'sec-fetch-site': 'none' },
      'without the header': withoutHeader,
      'the header with another value': { ...withBody(port), 'sluice-console': 'true' },
    }
    for (const [attempt, headers] of Object.entries(attempts)) {
      const answer = await ask(port, '/sluice/api/block', { headers, body: BODIES['/api/block'] })
      expect({ attempt, status: answer.status }).toEqual({ attempt, status: 403 })
      expect(answer.headers['access-control-allow-origin']).toBeUndefined()
    }
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      'application/jsonp',
    ]) {
      const headers = { ...withBody(port), 'content-type': type }
      expect((await ask(port, '/sluice/api/block', { headers, body: BODIES['/api/block'] })).status).toBe(415)
    }
    for (const site of ['cross-site', 'same-site']) {
      const headers = { ...asOperator(port), 'sec-fetch-site': site }
      const answer = await ask(port, '/sluice/api/about', { headers })
      expectProblem(answer, 403)
      expect(answer.headers['access-control-allow-credentials']).toBeUndefined()
    }
    await changesNothing(store)
    // The page of the console itself is served behind all of it.
    expect((await ask(port, '/sluice/api/block', { headers: withBody(port), body: BODIES['/api/block'] })).status).toBe(
      200,
    )
    expect((await ask(port, '/sluice/api/block', { headers: bare, body: BODIES['/api/block'] })).status).toBe(200)
  })

  test('no page may frame, cache, sniff or share its responses, whatever middleware sets', async () => {
    const { port } = await served(start, { before: STACK })
    for (const path of ['/sluice', '/sluice/', '/sluice/api/about', '/sluice/api/none']) {
      const { headers } = await ask(port, path, { headers: { ...asOperator(port), 'accept-encoding': 'gzip' } })
      const isPage = headers['content-type']?.startsWith('text/html')
      expect(headers).toMatchObject({
        // The page has no data: it may be kept, and compressed, where it asks each time.
        'cache-control': isPage ? 'no-cache, no-transform' : 'no-store, no-transform',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
        'x-frame-options': 'DENY',
        'content-security-policy': expect.stringMatching(/^default-src 'none'.*frame-ancestors 'none'/),
      })
      expect(headers['content-encoding']).toBe(isPage ? 'gzip' : undefined)
      expect(headers).not.toHaveProperty('access-control-allow-origin')
      expect(headers['content-security-policy']).not.toMatch(/unsafe|\*/)
    }
  })

  test('a name that points here is not answered', async () => {
    const rebound = (port: number) => ({
      host: `evil.example:${port}`,
      origin: `http://evil.example:${port}`,
      'sec-fetch-site': 'same-origin',
    })
    const everyone = () => ({ name: 'anyone on this machine', may: 'act' })
    const { port: open, store } = await served(start, { authorize: everyone })
    const { port } = await served(start, { authorize: everyone, hosts: ['console.example:80', 'localhost'] })
    // A page can set each of them for its own name.
    const credentials: Record<string, string>[] = [{}, { cookie: 'a=b' }, { authorization: 'x' }]
    for (const credential of credentials) {
      for (const to of [open, port]) {
        const headers = { ...withBody(to), ...rebound(to), ...credential }
        expectProblem(await ask(to, '/sluice/api/about', { headers }), 403)
        expectProblem(await ask(to, '/sluice/api/block', { headers, body: BODIES['/api/block'] }), 403)
      }
    }
    await changesNothing(store)
    expect((await ask(open, '/sluice/', { headers: { host: 'admin.example.com' } })).json.detail).toMatch(
      /set hosts: \['admin\.example\.com'\]/,
    )
    expectProblem(await ask(port, '/sluice/', { headers: rebound(port) }), 403)
    expect((await ask(port, '/sluice/api/about', { headers: { host: 'localhost' } })).status).toBe(200)
  })

  test('without hosts, addresses and localhost are answered, and no name that may point elsewhere', async () => {
    const { port } = await served(start, { authorize: () => ({ name: 'ann', may: 'read' }) })
    const statusOf = async (host: string) => [
      host,
      (await ask(port, '/sluice/api/about', { headers: { host } })).status,
    ]
    for (const host of ['127.0.0.1', '192.0.2.1:8080', 'localhost', 'LOCALHOST:3000', '[::1]', '[2001:db8::1]:8080']) {
      expect(await statusOf(host)).toEqual([host, 200])
    }
    const others = [
      'x',
      'admin.example.com',
      'localhost.evil.example',
      'evil.localhost',
      'localhost.',
      '127.0.0.1.evil.example',
      '127.0.0.1:80.evil.example',
      '127.1',
      '[::1].evil.example',
      '[evil.example]',
      '::1',
    ]
    for (const host of others) expect(await statusOf(host)).toEqual([host, 403])
  })

  test('names that are markup, control a terminal or turn text around are plain ASCII in every answer', async () => {
    const names = [
      '<script>alert(1)</script>',
      '"><img src=x onerror=alert(1)>',
      "'-alert(1)-'",
      '\u202egnp.exe',
      '\u001b]0;owned\u0007\u009b2J',
      '\u2028',
      'zoë 🦄',
      '__proto__',
      'constructor',
      '{{7*7}}',
      '\ud800',
    ]
    const { port, mail, store } = await served(start)
    for (const name of names) {
      const identity = { kind: 'key', value: name }
      // A lone surrogate has no UTF-8.
      const counted = name.isWellFormed() ? name : '\ufffd'
      for (let i = 0; i < 2; i++) await mail.consume(counted)
      await ask(port, '/sluice/api/block', {
        headers: withBody(port),
        body: { identity, for: '1h', reason: name.slice(0, 200) },
      })
      for (const [path, body] of [
        ['identity', { identity }],
        ['why', { identity }],
        ['blocks', {}],
      ] as const) {
        const { status, text } = await ask(port, `/sluice/api/${path}`, { headers: withBody(port), body })
        expect(status).toBe(200)
        expect(text).toMatch(/^[ -~]*$/)
        expect(text).not.toMatch(/[<>&']/)
      }
    }
    const { json } = await ask(port, '/sluice/api/refusals', { headers: asOperator(port) })
    const refused = new Set(json.refusals.flatMap(({ identities }: { identities: string[] }) => identities))
    for (const name of names.filter((each) => each.isWellFormed())) expect(refused).toContain(`key=${name}`)
    expect((await store.blocks?.list({ kind: 'key' }))?.entries).toHaveLength(names.length)
  })

  test('huge and malformed bodies are problems', async () => {
    const { port, store } = await served(start)
    const blocked = (body: unknown) => ask(port, '/sluice/api/block', { headers: withBody(port), body })
    const identity = (value: unknown) => ({ identity: { kind: 'ip', value }, for: '1h' })
    expectProblem(await blocked(identity('x'.repeat(100_000))), 413)
    for (const body of [
      identity('x'.repeat(5000)),
      identity(['192.0.2.7']),
      identity({}),
      identity(7),
      { ...identity('192.0.2.7'), more: 1 },
      { identity: { kind: '__proto__', value: 'x' }, for: '1h' },
      { identity: { kind: 'ip+route', value: ['192.0.2.7'] }, for: '1h' },
      '{"identity":',
      '[]',
      'null',
      '"text"',
      '',
      `${'['.repeat(30_000)}${']'.repeat(30_000)}`,
    ]) {
      expectProblem(await blocked(body), 400)
    }
    await changesNothing(store)
  })

  test('huge bodies are problems also behind a parser that takes them, and without a length', async () => {
    const { port, store } = await served(start, { before: [jsonParser] })
    const headers = { ...withBody(port), 'transfer-encoding': 'chunked' }
    const sent = async (value: unknown) => {
      const body = JSON.stringify({ identity: IP, for: '1h', reason: value })
      return (await ask(port, '/sluice/api/block', { headers, body })).status
    }
    expect(await sent('x'.repeat(100_000))).toBe(413)
    expect(await sent('\u{1F3B2}'.repeat(20_000))).toBe(413)
    expect(await sent('x'.repeat(60_000))).toBe(400)
    const nested = `{"reason":${'['.repeat(30_000)}${']'.repeat(30_000)}}`
    expectProblem(await ask(port, '/sluice/api/block', { headers, body: nested }), 400)
    await changesNothing(store)
  })

  test('paths and methods that it does not have are problems', async () => {
    const { port } = await served(start)
    for (const path of [
      '/sluice/api',
      '/sluice/api/constructor',
      '/sluice/__proto__',
      '/sluice/api/block/',
      '/sluice/api/%62lock',
    ]) {
      const { status } = await ask(port, path, { headers: withBody(port), body: BODIES['/api/block'] })
      expect({ path, status }).toEqual({ path, status: 404 })
    }
    expectProblem(await ask(port, '/sluice/api/block', { headers: asOperator(port) }), 405)
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
      expectProblem(await ask(port, '/sluice/api/about', { method, headers: withBody(port), body: '{}' }), 405)
    }
  })

  test('errors of a store are problems without a stack', async () => {
    const { port } = await served(start, { store: brokenStore() })
    const answer = await ask(port, '/sluice/api/block', { headers: withBody(port), body: BODIES['/api/block'] })
    expectProblem(answer, 500)
    expect(answer.text).not.toContain('secret-of')
  })
})

function brokenStore(): ManagedStore {
  const store = memoryStore()
  const fail = () => Promise.reject(new Error('secret-of-the-store'))
  const blocks = { ...store.blocks, get: fail, add: fail, list: fail }
  return withMembers(store, { [BANS]: { ...store[BANS], blocks } })
}

describe('attacks on the console, whatever the framework', () => {
  const start = APPS.Koa as StartApp

  test('an address that asks too often is refused, whatever address it claims', async () => {
    const { port } = await served(start)
    const claims = 'X-Forwarded-For: 203.0.113.9\r\nForwarded: for=203.0.113.9'
    const request = `GET /sluice/api/about HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: guess\r\n${claims}\r\n`
    // On one connection, as all of them have to come within a minute.
    const socket = connect(port, '127.0.0.1')
    socket.end(`${`${request}\r\n`.repeat(604)}${request}Connection: close\r\n\r\n`)
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    expect(text.match(/HTTP\/1\.1 403/g)).toHaveLength(600)
    expect(text.match(/HTTP\/1\.1 429/g)).toHaveLength(5)
    expect(text).toMatch(/Retry-After: [1-9]/i)
  })

  test('addresses of one IPv6 network, and of one IPv4 client, are one client', async () => {
    const app = express().set('trust proxy', 1)
    app.use('/sluice', onExpress({ store: memoryStore(), authorize: () => undefined }))
    const server = createServer(app).listen(0, '127.0.0.1')
    servers.push(server)
    await once(server, 'listening')
    const socket = connect(portOf(server), '127.0.0.1')
    const request = (from: string) =>
      `GET /sluice/api/about HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: guess\r\nX-Forwarded-For: ${from}\r\n`
    const six = Array.from({ length: 602 }, (_, i) => request(`2001:db8:0:1:${i.toString(16)}::7`))
    const four = Array.from({ length: 602 }, (_, i) => request(i % 2 === 0 ? '192.0.2.7' : '::ffff:192.0.2.7'))
    const last = `${request('2001:db8:0:2::7')}Connection: close\r\n`
    socket.end([...six, ...four, last].map((each) => `${each}\r\n`).join(''))
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))
    const ofClient = [...Array(600).fill(403), 429, 429]
    expect(statuses).toEqual([...ofClient, ...ofClient, 403])
  })

  test('clients with long names leave room for the newest refusals, and the answer says that there are more', async () => {
    const { port, store } = await served(start)
    // Each character is six in the answer.
    const long = (i: number) => `${'\u2028'.repeat(250)}${i}`
    const kinds = Array.from({ length: 16 }, (_, i) => `kind-${i}`)
    const limits = kinds.map((kind) =>
      slidingLog({ name: kind, limit: 1, window: '1h', key: keyed(kind, (n: number) => long(n)) }),
    )
    const limiter = createLimiter({ name: 'long', store, limits })
    for (let i = 0; i < 200; i++) for (let n = 0; n < 2; n++) await limiter.consume(i)
    const { status, json } = await ask(port, '/sluice/api/refusals', { headers: asOperator(port) })
    expect({ status, more: json.more }).toEqual({ status: 200, more: true })
    const { refusals } = json
    expect(refusals.length).toBeGreaterThan(50)
    expect(refusals.map(({ identities }: { identities: string[] }) => identities[0])).toContain(`kind-0=${long(199)}`)
    const times = refusals.map(({ at }: { at: number }) => at)
    expect(times).toEqual([...times].sort((one, other) => other - one))
    for (let i = 0; i < 200; i++) await limiter.consume(7)
    const body = { identity: { kind: 'kind-3', value: long(7) } }
    const why = await ask(port, '/sluice/api/why', { headers: withBody(port), body })
    expect({ status: why.status, more: why.json.more }).toEqual({ status: 200, more: true })
  })

  test('an authorize that hangs refuses after 5 seconds', async () => {
    const { port } = await served(start, { authorize: () => new Promise(() => {}) })
    const began = performance.now()
    expectProblem(await ask(port, '/sluice/api/about', { headers: asOperator(port) }), 403)
    expect(performance.now() - began).toBeGreaterThan(4900)
  })

  test('no console starts without authorize', async () => {
    for (const authorize of [undefined, true, {}]) {
      await expect(served(APPS['Express 5'] as StartApp, { authorize: authorize as never })).rejects.toThrow(
        /authorize: expected a function/,
      )
    }
  })

  test('a store that is away is a problem that says since when', async () => {
    const redis = await startRedis()
    const client = new Redis(redis.port, { retryStrategy: () => 50 })
    client.on('error', () => {})
    const store = redisStore(client, { timeout: 300, warnings: { SLUICE_STORE_UNAVAILABLE: false } })
    await store.ready()
    const { port } = await served(start, { store })
    await redis.stop()
    await vi.waitUntil(async () => (await store.health()).state === 'unavailable', { timeout: 20_000 })
    const answer = await ask(port, '/sluice/api/blocks', { headers: withBody(port), body: {} })
    expectProblem(answer, 503)
    expect(answer.json.detail).toMatch(/^the store is away since \d{4}-.*: nothing can be read or changed/)
    expect((await ask(port, '/sluice/api/about', { headers: asOperator(port) })).json.store.state).toBe('unavailable')
    await store.close()
    client.disconnect()
  })
})
