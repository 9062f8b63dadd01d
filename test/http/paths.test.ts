import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { byIp, byPath, memoryStore, trap } from '@sluice/core'
import * as expressAdapter from '@sluice/express'
import * as fastifyAdapter from '@sluice/fastify'
import { policies } from '@sluice/policies'
import express from 'express'
import express4 from 'express4'
import fastify from 'fastify'
import { afterEach, describe, expect, test } from 'vitest'
import { type AnyOptions, type RunningApp, run } from './support/app.js'
import { FRAMEWORKS } from './support/frameworks.js'

const running: RunningApp[] = []
afterEach(async () => {
  for (const app of running.splice(0)) await app.close()
})

const LIMITED = { limit: 100, window: '1h' } as const

/** Limiters that read paths. */
const READERS: Readonly<Record<string, () => Promise<AnyOptions>>> = {
  policies: async () => {
    const policy = { match: { paths: ['/login'] }, limits: [LIMITED] }
    return {
      policies: await policies.from({ object: { version: 1, policies: { one: policy } } }),
      store: memoryStore(),
    }
  },
  byPath: async () => ({ ...LIMITED, key: byPath() }),
  'a trap': async () => {
    const ban = {
      by: 'ip',
      after: 4,
      within: '1h',
      for: ['1h'],
      private: true,
      trap: trap(['/.env', '/.git/*']),
    } as const
    return { ...LIMITED, key: byIp(), ban } as AnyOptions
  },
}

/** Sends exactly this target, which no client library would do. Resolves to the status. */
async function statusOf(port: number, path: string): Promise<number | undefined> {
  const sent = request({ host: '127.0.0.1', port, path, agent: false }).end()
  const [response] = await once(sent, 'response')
  response.resume()
  return response.statusCode
}

describe.each(Object.entries(FRAMEWORKS))('%s', (_, factory) => {
  const start = async (options: AnyOptions, paths: readonly string[]) => {
    const routes = Object.fromEntries(paths.map((path) => [path, {}]))
    const app = await run(factory, { global: [options], routes })
    running.push(app)
    return { app, get: (path: string) => statusOf((app.server.address() as AddressInfo).port, path) }
  }

  test.each(Object.entries(READERS))('a target that %s cannot read completely gets 400', async (_, make) => {
    const { app, get } = await start(await make(), ['/login'])
    expect(await get('/login')).toBe(200)
    for (const path of [
      `${'/x/..'.repeat(600)}/login`,
      `${'/X'.repeat(1000)}/login`,
      '//ann@example.com/login#',
      'http://example.com;/login',
      'ftp://example.com/login',
      'http://example.com/a|/x/login',
      '/a|/x/login#',
      "/o'neil/x/login?a#",
    ]) {
      expect([path.slice(0, 30), await get(path)]).toEqual([path.slice(0, 30), 400])
    }
    expect(app.ran).toEqual(['/login'])
  })

  test('in report mode a request with an unreadable target is admitted', async () => {
    const { get } = await start({ ...LIMITED, key: byPath(), enforce: { mode: 'report' } } as AnyOptions, [])
    expect(await get(`${'/X'.repeat(1000)}/login`)).toBe(404)
  })

  test('a trap matches every spelling of its paths that some router accepts', async () => {
    const spellings =
      '/.env /.ENV //.env /%2eenv /.env/ /.env;a=b /.env%3b /;x/.env /x/../.env /x/..;/.env /./.env /.git%2fconfig'
        .concat(' /.git;x/config /.git/a/b /x\\..\\.env')
        .split(' ')
    for (const path of spellings) {
      const ban = { by: 'ip', after: 1, within: '1h', for: ['1h'], private: true, trap: trap(['/.env', '/.git/*']) }
      const { get } = await start({ ...LIMITED, key: byIp(), ban } as unknown as AnyOptions, ['/'])
      expect([path, await get(path)]).toEqual([path, 429])
    }
    const ban = {
      by: 'ip',
      after: 1,
      within: '1h',
      for: ['1h'],
      private: true,
      trap: trap(['/.env', '/.git/*', '/:id']),
    }
    const { get } = await start({ ...LIMITED, key: byIp(), ban } as unknown as AnyOptions, ['/'])
    for (const path of ['/', '/x.env', '/.environment', '/.gitx/config', '/a/.env', '/x;.env', '/7'])
      expect([path, await get(path)]).not.toEqual([path, 429])
  })
})

test.each([
  ['Express 5', express],
  ['Express 4', express4 as never],
])(
  'no target has a router on a parameter remove more than its part of the path: %s',
  async (_, make: typeof express) => {
    const policy = { match: { paths: ['/:tenant/login'] }, limits: [{ limit: 1, window: '1h' }] }
    const loaded = await policies.from({ object: { version: 1, policies: { one: policy } } })
    const limiters = [{ policies: loaded, store: memoryStore() }, { limit: 1, window: '1h', key: byPath() } as const]
    for (const limiter of limiters) {
      const app = make()
      app.use(expressAdapter.rateLimit(limiter as never))
      const router = make.Router()
      router.get('/login', (_req, res) => void res.send('done'))
      app.use('/:tenant', router)
      const server = app.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const get = (path: string) => statusOf((server.address() as AddressInfo).port, path)
      expect([await get('/a|/login'), await get('/a|/login')]).toEqual([200, 429])
      for (const path of ['http://h/a|/x/login', 'http://h/a|/y/login', '/a|/z/login#', '/a|#b/login', "/a'#c/login"])
        expect([path, await get(path)]).toEqual([path, 400])
      server.close()
    }
  },
)

test.each([
  ['does not begin the query there', { routerOptions: { useSemicolonDelimiter: false } }, [200, 429, 200]],
  ['begins the query there', { routerOptions: { useSemicolonDelimiter: true } }, [200, 429, 429]],
  ['begins it there by its earlier option', { useSemicolonDelimiter: true }, [200, 429, 429]],
  ['hides whether it does', { useSemicolonDelimiter: true, routerOptions: { caseSensitive: true } }, [200, 400, 400]],
])('keys end at a semicolon if Fastify begins the query there: it %s', async (_, options, expected) => {
  const app = fastify(options as object)
  await app.register(fastifyAdapter.rateLimit, { limit: 1, window: '1h', key: byPath() })
  app.get('/*', async () => 'done')
  const statuses: number[] = []
  for (const path of ['/a', '/a;1', '/a;2/b']) statuses.push((await app.inject(path)).statusCode)
  expect(statuses).toEqual(expected)
  await app.close()
})

test('policies respond with 400 to a long unreadable path over HTTP/2', async () => {
  const app = fastify({ http2: true })
  const policy = { match: { paths: ['/login', '/a/:b/c'] }, limits: [LIMITED] }
  const loaded = await policies.from({ object: { version: 1, policies: { one: policy } } })
  await app.register(fastifyAdapter.rateLimit, { policies: loaded, store: memoryStore() })
  app.get('/*', async () => 'done')
  await app.listen({ port: 0, host: '127.0.0.1' })
  const client = connect(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`)
  const get = async (path: string) => {
    const stream = client.request({ ':path': path })
    const [headers] = await once(stream, 'response')
    stream.resume()
    return headers[':status']
  }
  expect(await get(`/a${'/%'.repeat(25_000)}`)).toBe(400)
  expect(await get(`/a${'/a'.repeat(25_000)}`)).toBe(200)
  client.close()
  await app.close()
})
