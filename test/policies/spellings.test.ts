import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect as http2 } from 'node:http2'
import { connect } from 'node:net'
import Router, { type RouterMiddleware, type RouterOptions } from '@koa/router'
import { byPath, type KeyFunction, memoryStore, type Store } from '@sluice/core'
import * as expressAdapter from '@sluice/express'
import * as fastifyAdapter from '@sluice/fastify'
import * as koaAdapter from '@sluice/koa'
import { type Policies, policies } from '@sluice/policies'
import express from 'express'
import express4 from 'express4'
import fc from 'fast-check'
import fastify, { type FastifyServerOptions } from 'fastify'
import Koa from 'koa'
import { afterEach, expect, test } from 'vitest'
import { byEffort } from '../support/effort.js'
import { KeysOfRoutes, PATHS, spelledTargets, WHOLE } from '../support/path-spellings.js'

const REACHED = 'the handler ran: '
const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** Limiters of any framework. */
interface Limits {
  readonly byPolicies: { readonly policies: Policies; readonly store: Store }
  readonly byPath: { readonly limit: number; readonly window: '1m'; readonly key: KeyFunction<unknown> }
}

/** Starts an app, and resolves to its port. A route responds with itself and its parameters. */
type Start = (limits: Limits) => Promise<number>

const reached = (route: unknown, params: unknown) => REACHED + encodeURIComponent(JSON.stringify([route, params]))

const onFastify =
  (options: FastifyServerOptions): Start =>
  async ({ byPolicies, byPath }) => {
    const app = fastify(options)
    await app.register(fastifyAdapter.rateLimit, byPolicies)
    await app.register(fastifyAdapter.rateLimit, byPath as never)
    for (const path of ['/api/search', '/api/in/:id', '/files', '/files/*', '/wild/*', '/users/:id', '/users/:id/x'])
      app.get(path, async (request) => reached(path, request.params))
    await app.listen({ port: 0, host: '127.0.0.1' })
    closing.push(() => app.close())
    return (app.server.address() as { port: number }).port
  }

const onExpress =
  (make: typeof express, wildcard: string, settings: readonly string[]): Start =>
  async ({ byPolicies, byPath }) => {
    const app = make()
    app.set('env', 'test')
    for (const setting of settings) app.enable(setting)
    app.use(expressAdapter.rateLimit(byPolicies), expressAdapter.rateLimit(byPath))
    const router = make.Router()
    router.get('/search', (_req, res) => void res.send(reached('search', {})))
    const inner = make.Router()
    inner.get('/:id', (req, res) => void res.send(reached('in', req.params)))
    router.use('/in', inner)
    app.use('/api', router)
    app.use('/files', (req, res) => void res.send(reached('files', req.path)))
    const user = make.Router({ mergeParams: true })
    user.get('/x', (req, res) => void res.send(reached('x', req.params)))
    app.use('/users/:id', user)
    for (const path of [wildcard, '/users/:id']) app.get(path, (req, res) => void res.send(reached(path, req.params)))
    return listening(createServer(app))
  }

const onKoa =
  (options: RouterOptions): Start =>
  async ({ byPolicies, byPath }) => {
    const app = new Koa()
    app.silent = true
    const respond: RouterMiddleware = (context) => {
      context.body = reached(context._matchedRoute, context.params)
    }
    app.use(koaAdapter.rateLimit(byPolicies))
    app.use(koaAdapter.rateLimit(byPath as never))
    const inner = new Router(options)
    inner.get('/search', respond)
    inner.get('/in/:id', respond)
    const outer = new Router(options)
    outer.use('/api', inner.routes())
    const user = new Router(options)
    user.get('/x', respond)
    outer.use('/users/:id', user.routes())
    for (const path of ['/files{/*rest}', '/wild/*rest', '/users/:id']) outer.get(path, respond)
    app.use(outer.routes())
    return listening(createServer(app.callback()))
  }

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as { port: number }).port
}

const STRICT = ['strict routing', 'case sensitive routing']
const ROUTERS: Readonly<Record<string, Start>> = {
  'Express 5 as it comes': onExpress(express, '/wild/*rest', []),
  'Express 5, strict and case sensitive': onExpress(express, '/wild/*rest', STRICT),
  'Express 4 as it comes': onExpress(express4 as never, '/wild/*', []),
  'Express 4, strict and case sensitive': onExpress(express4 as never, '/wild/*', STRICT),
  'Koa as it comes': onKoa({}),
  'Koa, strict and case sensitive': onKoa({ strict: true, sensitive: true }),
  'Fastify as it comes': onFastify({}),
  'Fastify, lenient': onFastify({
    routerOptions: { caseSensitive: false, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
  }),
  'Fastify, with semicolons for queries': onFastify({ useSemicolonDelimiter: true } as FastifyServerOptions),
  'Fastify, lenient, with semicolons for queries': onFastify({
    routerOptions: {
      ...{ caseSensitive: false, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
      ...{ useSemicolonDelimiter: true },
    },
  } as FastifyServerOptions),
}

/** Sends the target unchanged, which no client library would do. Resolves to the response's text. */
function get(port: number, target: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(`GET ${target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`, 'latin1')
    })
    let text = ''
    socket.on('data', (data) => (text += data.toString('latin1')))
    socket.on('error', () => resolve(text))
    socket.on('close', () => resolve(text))
  })
}

test.each(Object.entries(ROUTERS))(
  'no spelling of a path reaches a handler past its policy, or by two keys: %s',
  async (_, start) => {
    const policy = { match: { paths: PATHS }, limits: [{ limit: 1_000_000, window: '1m' }] }
    const loaded = await policies.from({ object: { version: 1, policies: { one: policy } } })
    const ownKey = byPath<unknown>()
    let key: unknown
    const port = await start({
      byPolicies: { policies: loaded, store: memoryStore() },
      byPath: {
        ...{ limit: 1_000_000, window: '1m' },
        key: (request, context) => {
          key = undefined
          try {
            key = ownKey(request, context)
          } catch {
            // A limiter with this key alone responds with 400.
          }
          return 'one'
        },
      },
    })
    const keys = new KeysOfRoutes()
    let count = 0
    const check = async (target: string) => {
      const response = await get(port, target)
      const [head = '', body = ''] = response.split('\r\n\r\n')
      const at = body.indexOf(REACHED)
      if (at < 0) return
      count++
      expect(head.toLowerCase(), target).toContain('\r\nratelimit: "one"')
      const problem = keys.problem(body.slice(at + REACHED.length).trim(), key as string | undefined, target)
      expect(problem, target).toBeUndefined()
    }
    for (const target of WHOLE) await check(target)
    expect(count).toBeGreaterThan(5)
    await fc.assert(fc.asyncProperty(spelledTargets, check), {
      numRuns: byEffort({ quick: 100, usual: 100, full: 20_000 }),
    })
  },
)

test('every spelling of a host that Express or Koa accept matches the host of a policy', async () => {
  const match = { hosts: ['api.example.com', '*.example.org', '[::1]'] }
  const loaded = await policies.from({
    object: { version: 1, policies: { one: { match, limits: [{ limit: 1, window: '1m' }] } } },
  })
  const applies = async (host: string) => (await loaded.explain({ path: '/', headers: { host } }))[0]?.applies
  const same = 'api.example.com API.Example.COM api.example.com. api.example.com:80 api.example.com:00000080'
    .concat(
      ' api.example.com:http api.example.com:80]x api.example.com.:80 api.example.com: a.example.org:8 a.b.example.org',
    )
    .concat(' [::1] [::1]:8080')
    .split(' ')
  for (const host of same) expect(await applies(host), host).toBe(true)
  for (const host of ['example.com', 'example.org', 'api.example.com.evil', '[::1', 'xapi.example.com', '']) {
    expect(await applies(host), host).toBe(false)
  }
})

test('hosts of a policy match over HTTP/2 as well', async () => {
  const match = { hosts: ['api.example.com'] }
  const loaded = await policies.from({
    object: { version: 1, policies: { one: { match, limits: [{ limit: 1, window: '1m' }] } } },
  })
  const app = fastify({ http2: true })
  await app.register(fastifyAdapter.rateLimit, { policies: loaded, store: memoryStore() })
  app.get('/', async () => REACHED)
  await app.listen({ port: 0, host: '127.0.0.1' })
  closing.push(() => app.close())
  const client = http2(`http://127.0.0.1:${(app.server.address() as { port: number }).port}`)
  const status = () =>
    new Promise((resolve, reject) => {
      const stream = client.request({ ':authority': 'api.example.com', ':path': '/' })
      stream.on('response', (headers) => resolve(headers[':status']))
      stream.on('error', reject)
      stream.resume().end()
    })
  expect([await status(), await status()]).toEqual([200, 429])
  client.close()
})
