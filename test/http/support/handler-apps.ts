import { createServer, type Server } from 'node:http'
import type { Readable } from 'node:stream'
import type { Limiter, Verdict } from '@sluice/core'
import * as expressAdapter from '@sluice/express'
import * as fastifyAdapter from '@sluice/fastify'
import * as koaAdapter from '@sluice/koa'
import express, { type Express, type NextFunction, type Request, type Response } from 'express'
import express4 from 'express4'
import fastify from 'fastify'
import Koa from 'koa'
import type { AnyOptions } from './app.js'
import { appsByEffort } from './by-effort.js'

/** A handler's response, sent in its framework's way: an object as JSON, a text as text, a stream as a stream. */
export interface HandlerResponse {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | object | Buffer | Readable
}

/** Called with the verdict that the handler finds on its request. */
export type Handler = (verdict: Verdict | undefined) => HandlerResponse | Promise<HandlerResponse>

export interface HandlerApp {
  readonly server: Server
  /** The errors that reached the framework's error handler, which responds with 500. */
  readonly errors: unknown[]
  /** The limiter of the only route, `/`, for every method. */
  readonly limiter: Limiter<string>
}

export type HandlerAppFactory = (options: AnyOptions, handler: Handler) => Promise<HandlerApp>

const expressApp =
  (make: () => Express): HandlerAppFactory =>
  async (options, handler) => {
    const errors: unknown[] = []
    const app = make()
    const limiter = expressAdapter.rateLimit(options as never)
    app.all('/', limiter, (req, res, next) => {
      Promise.resolve(handler(req.rateLimit)).then(({ status = 200, headers = {}, body = '' }) => {
        res.status(status).set(headers)
        if (isStream(body)) body.pipe(res)
        else res.send(body)
      }, next)
    })
    app.use((error: unknown, _req: Request, res: Response, _next: NextFunction) => {
      errors.push(error)
      res.status(500).send('error')
    })
    return { server: createServer(app), errors, limiter: limiter.limiter as never }
  }

const koaApp: HandlerAppFactory = async (options, handler) => {
  const errors: unknown[] = []
  const app = new Koa()
  app.use(async (_ctx, next) => {
    try {
      await next()
    } catch (error) {
      errors.push(error)
      throw error
    }
  })
  app.silent = true
  const limiter = koaAdapter.rateLimit(options as never)
  app.use(limiter)
  app.use(async (ctx) => {
    const { status = 200, headers = {}, body = '' } = await handler(ctx.state.rateLimit)
    ctx.status = status
    ctx.set(headers)
    ctx.body = body
  })
  return { server: createServer(app.callback()), errors, limiter: limiter.limiter as never }
}

const fastifyApp: HandlerAppFactory = async (options, handler) => {
  const errors: unknown[] = []
  const app = fastify()
  app.setErrorHandler((error, _request, reply) => {
    // The adapter hides details from clients in the cause.
    errors.push((error as Error).cause ?? error)
    reply.code(500).send('error')
  })
  await app.register(fastifyAdapter.rateLimit, { global: false })
  const limiter = app.rateLimit(options as never)
  app.all('/', { onRequest: limiter }, async (request, reply) => {
    const { status = 200, headers = {}, body = '' } = await handler(request.rateLimit)
    return reply.code(status).headers(headers).send(body)
  })
  await app.ready()
  return { server: app.server, errors, limiter: limiter.limiter as never }
}

export const HANDLER_APPS: Readonly<Record<string, HandlerAppFactory>> = appsByEffort({
  'Express 5': expressApp(express),
  'Express 4': expressApp(express4),
  Koa: koaApp,
  Fastify: fastifyApp,
})

function isStream(body: unknown): body is Readable {
  return typeof (body as { pipe?: unknown })?.pipe === 'function'
}
