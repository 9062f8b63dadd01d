import Router from '@koa/router'
import { byRoute, type KeyFunction, type LimitForm } from '@sluice/core'
import * as expressAdapter from '@sluice/express'
import * as fastifyAdapter from '@sluice/fastify'
import * as koaAdapter from '@sluice/koa'
import express from 'express'
import express4 from 'express4'
import fastify from 'fastify'
import Koa from 'koa'
import request from 'supertest'
import { describe, expect, test } from 'vitest'
import { warningsDuring } from '../support/process-events.js'
import type { AnyOptions } from './support/app.js'

/** Options of a limiter that records its keys. */
function noting(key: KeyFunction<unknown>, keys: unknown[]): AnyOptions & LimitForm {
  const noted = (request: unknown, context: never) => {
    const value = key(request, context)
    keys.push(value)
    return value
  }
  return { limit: 99, window: '1m', key: noted as KeyFunction<unknown> }
}

const get = async (app: Parameters<typeof request>[0], paths: readonly string[]) => {
  for (const path of paths) await request(app).get(path).expect(200)
}

const ok: express.RequestHandler = (_req, res) => void res.send('ok')

describe.each([
  ['Express 5', express],
  ['Express 4', express4],
] as const)('byRoute in %s', (_name, make) => {
  test('a route has one name, in any spelling of its mount', async () => {
    const keys: unknown[] = []
    const limit = expressAdapter.rateLimit(noting(byRoute(), keys))
    const app = make()
    const router = make.Router()
    router.get('/items/:id', limit, ok)
    app.use('/api/v1', router)
    app.use('/tenants/:t', router)
    await get(app, [
      '/api/v1/items/1',
      '/Api/v1/items/2',
      '/aPI/V1/Items/3',
      '/tenants/a/items/4',
      '/tenants/b/items/5',
    ])
    expect(new Set(keys)).toEqual(new Set(['/items/:id']))
  })

  test('a route of several paths or regular expressions has the name that the application wrote', async () => {
    const keys: unknown[] = []
    const limit = expressAdapter.rateLimit(noting(byRoute(), keys))
    const app = make()
    app.get(['/a', /^\/b+$/], limit, ok)
    app.get(/^\/c(\d+)$/i, limit, ok)
    await get(app, ['/a', '/A', '/b', '/bbb', '/c1', '/C22'])
    expect(new Set(keys)).toEqual(new Set(['/a,/^\\/b+$/', '/^\\/c(\\d+)$/i']))
  })

  test('byRoute with mount separates routes of the same name in several routers', async () => {
    const keys: unknown[] = []
    const app = make()
    const warnings = await warningsDuring(async () => {
      for (const mount of ['/v1', '/v2']) {
        const router = make.Router()
        router.get('/items', expressAdapter.rateLimit(noting(byRoute({ mount }), keys)), ok)
        app.use(mount, router)
      }
      await get(app, ['/v1/items', '/V2/items', '/v2/Items'])
    })
    expect(keys).toEqual(['/v1/items', '/v2/items', '/v2/items'])
    expect(warnings).toEqual([])
  })

  test('several routers with a route of one name cause one warning', async () => {
    const limit = expressAdapter.rateLimit({ limit: 99, window: '1m', key: byRoute() })
    const app = make()
    for (const mount of ['/v1', '/v2', '/v3']) {
      const router = make.Router()
      router.get('/items', limit, ok)
      app.use(mount, router)
    }
    const warnings = await warningsDuring(() =>
      get(app, ['/v1/items', '/V1/items', '/v2/items', '/v3/items', '/v2/items']),
    )
    expect(warnings).toEqual([
      expect.objectContaining({ code: 'SLUICE_AMBIGUOUS_ROUTE', message: expect.stringContaining('"/items"') }),
    ])
  })

  test('a path with several methods, or under a parameter, causes no warning', async () => {
    const limit = expressAdapter.rateLimit({ limit: 99, window: '1m', key: byRoute() })
    const app = make()
    const router = make.Router()
    router.get('/items', limit, ok)
    router.post('/items', limit, ok)
    router.get('/others', limit, ok)
    app.use('/tenants/:t', router)
    app.get('/items', limit, ok)
    const warnings = await warningsDuring(async () => {
      await get(app, ['/tenants/a/items', '/tenants/b/items', '/tenants/b/others', '/tenants/a/others'])
      await request(app).post('/tenants/c/items').expect(200)
    })
    expect(warnings).toEqual([])
  })
})

test('a route in nested routers of Koa is its whole pattern', async () => {
  const keys: unknown[] = []
  const limit = koaAdapter.rateLimit(noting(byRoute(), keys))
  const done: Koa.Middleware = (ctx) => {
    ctx.body = 'ok'
  }
  const inner = new Router({ prefix: '/items' }).get('/:id', limit, done)
  const outer = new Router({ prefix: '/tenants/:t' }).use('/v1', inner.routes())
  const plain = new Router().get(/^\/c(\d+)$/i, limit, done)
  const app = new Koa().use(outer.routes()).use(plain.routes())
  await get(app.callback(), ['/tenants/a/v1/items/1', '/Tenants/b/V1/items/2', '/c1', '/C22'])
  expect(new Set(keys)).toEqual(new Set(['/tenants/:t/v1/items/:id', '/^\\/c(\\d+)$/i']))
})

test('a route in Fastify is its whole pattern, and unknown paths share one name', async () => {
  const keys: unknown[] = []
  const app = fastify({ routerOptions: { caseSensitive: false, ignoreTrailingSlash: true } })
  await app.register(fastifyAdapter.rateLimit, noting(byRoute(), keys))
  await app.register(
    async (scope) => {
      scope.get('/:id(^\\d+$)', async () => 'ok')
      scope.get('/files/*', async () => 'ok')
    },
    { prefix: '/tenants/:t' },
  )
  for (const url of [
    '/tenants/a/1',
    '/TENANTS/b/2/',
    '/tenants/a/files/x',
    '/tenants/b/Files/y/z',
    '/none',
    '/None/2',
  ]) {
    await app.inject(url)
  }
  expect(new Set(keys)).toEqual(new Set(['/tenants/:t/:id(^\\d+$)', '/tenants/:t/files/*', '(no route)']))
})

test.each(['api', '/', '/api/', 5])('byRoute rejects the mount %o', (mount) => {
  expect(() => byRoute({ mount: mount as string })).toThrow(expect.objectContaining({ code: 'INVALID_POLICY' }))
})
