import { connect as http2 } from 'node:http2'
import { connect } from 'node:net'
import Router, { type RouterOptions } from '@koa/router'
import { memoryStore, type Store } from '@sluice/core'
import * as expressAdapter from '@sluice/express'
import * as fastifyAdapter from '@sluice/fastify'
import * as koaAdapter from '@sluice/koa'
import { type Policies, policies } from '@sluice/policies'
import express from 'express'
import fc from 'fast-check'
import fastify, { type FastifyServerOptions } from 'fastify'
import Koa from 'koa'
import { afterEach, expect, test } from 'vitest'
import { byEffort } from '../support/effort.js'

const PATHS = ['/api/search', '/files/**', '/users/:id', '/users/:id/x']
const REACHED = 'the handler ran'
const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

type Made = (loaded: Policies, store: Store) => Promise<number>

const onFastify =
  (options: FastifyServerOptions): Made =>
  async (loaded, store) => {
    const app = fastify(options)
    await app.register(fastifyAdapter.rateLimit, { policies: loaded, store })
    for (const path of ['/api/search', '/files/*', '/users/:id', '/users/:id/x']) app.get(path, async () => REACHED)
    await app.listen({ port: 0, host: '127.0.0.1' })
    closing.push(() => app.close())
    return (app.server.address() as { port: number }).port
  }

const onExpress =
  (settings: readonly string[]): Made =>
  async (loaded, store) => {
    const app = express()
    for (const setting of settings) app.enable(setting)
    app.use(expressAdapter.rateLimit({ policies: loaded, store }))
    const answer: express.Handler = (_req, res) => void res.send(REACHED)
    const router = express.Router()
    router.get('/search', answer)
    app.use('/api', router)
    app.use('/files', answer)
    app.get(['/users/:id', '/users/:id/x'], answer)
    const server = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    closing.push(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    })
    return (server.address() as { port: number }).port
  }

const onKoa =
  (options: RouterOptions): Made =>
  async (loaded, store) => {
    const app = new Koa()
    const answer: Koa.Middleware = (context) => {
      context.body = REACHED
    }
    app.use(koaAdapter.rateLimit({ policies: loaded, store }))
    const inner = new Router(options)
    inner.get('/search', answer)
    const outer = new Router(options)
    outer.use('/api', inner.routes())
    for (const path of ['/files{/*rest}', '/users/:id', '/users/:id/x']) {
      outer.get(path, answer)
    }
    app.use(outer.routes())
    const server = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    closing.push(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    })
    return (server.address() as { port: number }).port
  }

const ROUTERS: Readonly<Record<string, Made>> = {
  'Express as it comes': onExpress([]),
  'Express, strict and case sensitive': onExpress(['strict routing', 'case sensitive routing']),
  'Koa as it comes': onKoa({}),
  'Koa, strict and case sensitive': onKoa({ strict: true, sensitive: true }),
  'Fastify as it comes': onFastify({}),
  'Fastify, lenient': onFastify({
    routerOptions: { caseSensitive: false, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
  }),
  'Fastify, with semicolons for queries': onFastify({ useSemicolonDelimiter: true } as FastifyServerOptions),
}

const PIECES = '/ // /./ /../ %2f %2F \\ %5c ; ;a=b ? ?a=b %23 %3b %3f %00 %20 . .. %2e %2e%2e api API %61pi %41pi'
  .concat(
    ' search SEARCH se%61rch sear%63h files f%69les users x 1 %c3%a9 %ff % %u0061 http://h //h * %c5%bf %e2%84%aa',
  )
  .split(' ')
const WHOLE = '/api/search /files/a /users/1/x /users/1 http://h/api/search /API/search/ //api//search /api/%73earch'
  .concat(' /files /files/ /Files/../x /users/a%2fb/x /users//x /users/')
  .split(' ')

const edit = fc.record({ at: fc.nat(24), cut: fc.nat(2), piece: fc.constantFrom(...PIECES) })
const targets = fc
  .record({ whole: fc.constantFrom(...WHOLE), edits: fc.array(edit, { minLength: 1, maxLength: 3 }) })
  .map(({ whole, edits }) =>
    edits.reduce((target, { at, cut, piece }) => target.slice(0, at) + piece + target.slice(at + cut), whole),
  )

/** The request's target as it is, which no client library would send. Resolves to the response's text. */
function get(port: number, target: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(`GET ${target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`)
    })
    let text = ''
    socket.on('data', (data) => (text += data.toString('latin1')))
    socket.on('error', () => resolve(text))
    socket.on('close', () => resolve(text))
  })
}

test.each(Object.entries(ROUTERS))('no spelling reaches a handler past its policy: %s', async (_name, make) => {
  const loaded = await policies.from({
    object: {
      version: 1,
      policies: { one: { match: { paths: PATHS }, limits: [{ limit: 1_000_000, window: '1m' }] } },
    },
  })
  const port = await make(loaded, memoryStore())
  let reached = 0
  const check = async (target: string) => {
    const response = await get(port, target)
    if (!response.includes(REACHED)) return
    reached++
    expect(response.toLowerCase(), target).toContain('\r\nratelimit:')
  }
  for (const target of WHOLE) await check(target)
  expect(reached).toBeGreaterThan(5)
  await fc.assert(fc.asyncProperty(targets, check), { numRuns: byEffort({ quick: 100, usual: 100, full: 20_000 }) })
})

test('no spelling of a host that Express or Koa reads as its name is another one to a policy', async () => {
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

test('hosts are matched over HTTP/2 as well', async () => {
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
