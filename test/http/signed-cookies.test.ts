import fastifyCookie from '@fastify/cookie'
import { byCookie, type HttpContext, hashedKey } from '@sluice/core'
import * as expressAdapter from '@sluice/express'
import * as fastifyAdapter from '@sluice/fastify'
import * as koaAdapter from '@sluice/koa'
import cookieParser from 'cookie-parser'
import express from 'express'
import express4 from 'express4'
import fastify from 'fastify'
import Koa from 'koa'
import request from 'supertest'
import { describe, expect, test } from 'vitest'
import type { AnyOptions } from './support/app.js'
import { appsByEffort } from './support/by-effort.js'

interface SigningApp {
  /** Responds to `GET /set/:value` with a signed cookie `sid`, and limits every other path by it. */
  readonly listener: Parameters<typeof request>[0]
  readonly errors: unknown[]
}

type MakeApp = (options: AnyOptions, hasSupport: boolean) => Promise<SigningApp>

const expressApp =
  (make: typeof express): MakeApp =>
  async (options, hasSupport) => {
    const errors: unknown[] = []
    const app = make()
    if (hasSupport) app.use(cookieParser('a secret'))
    app.get('/set/:value', (req, res) => void res.cookie('sid', req.params.value, { signed: true }).end())
    app.use(expressAdapter.rateLimit(options as never))
    app.use((_req, res) => void res.send('done'))
    app.use(((error, _req, res, _next) => {
      errors.push(error)
      res.status(500).end()
    }) as express.ErrorRequestHandler)
    return { listener: app, errors }
  }

const koaApp: MakeApp = async (options, hasSupport) => {
  const errors: unknown[] = []
  const app = new Koa(hasSupport ? { keys: ['a secret'] } : {})
  app.on('error', (error) => errors.push(error))
  const limit = koaAdapter.rateLimit(options as never)
  app.use((ctx, next) => {
    const [, value] = /^\/set\/(.*)/.exec(ctx.path) ?? []
    if (value === undefined) return limit(ctx, next)
    ctx.cookies.set('sid', value, { signed: true })
    ctx.status = 200
  })
  app.use((ctx) => {
    ctx.body = 'done'
  })
  return { listener: app.callback(), errors }
}

const fastifyApp: MakeApp = async (options, hasSupport) => {
  const errors: unknown[] = []
  const app = fastify()
  app.setErrorHandler((error, _request, reply) => {
    // The adapter hides details from clients in the cause.
    errors.push((error as Error).cause ?? error)
    reply.code(500).send()
  })
  if (hasSupport) await app.register(fastifyCookie, { secret: 'a secret' })
  await app.register(fastifyAdapter.rateLimit, options as never)
  app.get<{ Params: { value: string } }>('/set/:value', { config: { rateLimit: false } }, (request, reply) => {
    reply.setCookie('sid', request.params.value, { signed: true, path: '/' }).send()
  })
  app.get('/', async () => 'done')
  await app.ready()
  return { listener: app.server, errors }
}

const FRAMEWORKS = appsByEffort({
  'Express 5': expressApp(express),
  'Express 4': expressApp(express4),
  Koa: koaApp,
  Fastify: fastifyApp,
})

describe.each(Object.entries(FRAMEWORKS))('signed cookies in %s', (_name, make) => {
  test('a signed cookie counts by the value that the framework verified, and a forged one is missing', async () => {
    const byName = byCookie<unknown>('sid', { signed: true })
    const keys: unknown[] = []
    const key = (request: unknown, context: HttpContext) => {
      keys.push(byName(request, context))
      return 'all'
    }
    const app = await make({ limit: 10, window: '1m', key }, true)
    const server = app.listener
    const set = await request(server).get('/set/real').expect(200)
    const cookies = ([set.headers['set-cookie']].flat() as string[]).map((text) => text.split(';')[0] as string)
    const forged = cookies.map((text) => text.replace(/.(..)$/, '_$1'))
    for (const sent of [cookies, [...cookies, 'sid=junk'], forged, ['sid=real'], []]) {
      await request(server).get('/').set('Cookie', sent.join('; ')).expect(200)
    }
    expect(keys).toEqual([hashedKey('real'), hashedKey('real'), undefined, undefined, undefined])
  })

  test('a signed cookie is a configuration error if the application cannot verify it', async () => {
    const app = await make({ limit: 10, window: '1m', key: byCookie('sid', { signed: true }) }, false)
    await request(app.listener).get('/').set('Cookie', 'sid=real').expect(500)
    expect(app.errors).toEqual([
      expect.objectContaining({ code: 'INVALID_POLICY', message: expect.stringContaining('byCookie: signed:') }),
    ])
  })
})
