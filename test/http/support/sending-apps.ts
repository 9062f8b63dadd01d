import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { Limiter, Verdict } from '@sluice/core'
import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import makeExpress, { type Express, type Request, type Response } from 'express'
import makeExpress4 from 'express4'
import makeFastify from 'fastify'
import Koa from 'koa'
import type { AnyOptions } from './app.js'
import { appsByEffort } from './by-effort.js'

/** The body of a response: in one piece or as a stream, sent by the framework, or written to Node's own response. */
export type Body =
  | { readonly whole: Buffer; readonly status?: number }
  | { readonly stream: () => Readable }
  | { readonly raw: (response: ServerResponse) => void }

export type Sending = (request: IncomingMessage, verdict: Verdict | undefined) => Body

export interface SendingApp {
  readonly server: Server
  readonly limiter: Limiter<string>
}

/** An app with one limiter on all paths, which responds with the result of `send`. */
export type SendingAppFactory = (options: AnyOptions, send: Sending) => Promise<SendingApp>

const expressApp =
  (make: () => Express): SendingAppFactory =>
  async (options, send) => {
    const app = make()
    app.set('env', 'test')
    app.disable('etag')
    const limiter = express.rateLimit(options as never)
    app.use(limiter)
    app.use((req: Request, res: Response) => {
      const body = send(req, req.rateLimit)
      if ('raw' in body) body.raw(res)
      else if ('stream' in body) body.stream().pipe(res)
      else res.status(body.status ?? 200).send(body.whole)
    })
    return { server: createServer(app), limiter: limiter.limiter as never }
  }

const koaApp: SendingAppFactory = async (options, send) => {
  const app = new Koa()
  app.silent = true
  const limiter = koa.rateLimit(options as never)
  app.use(limiter)
  app.use((ctx) => {
    const body = send(ctx.req, ctx.state.rateLimit)
    if ('raw' in body) {
      ctx.respond = false
      ctx.res.statusCode = 200
      body.raw(ctx.res)
    } else if ('stream' in body) ctx.body = body.stream()
    else {
      ctx.body = body.whole
      ctx.status = body.status ?? 200
    }
  })
  return { server: createServer(app.callback()), limiter: limiter.limiter as never }
}

const fastifyApp: SendingAppFactory = async (options, send) => {
  const app = makeFastify()
  await app.register(fastify.rateLimit, options as never)
  app.all('/*', (request, reply) => {
    const body = send(request.raw, request.rateLimit)
    if ('raw' in body) {
      reply.hijack()
      body.raw(reply.raw)
    } else if ('stream' in body) reply.send(body.stream())
    else reply.code(body.status ?? 200).send(body.whole)
  })
  await app.ready()
  return { server: app.server, limiter: app.rateLimit.limiter as never }
}

export const SENDING_APPS: Readonly<Record<string, SendingAppFactory>> = appsByEffort({
  'Express 5': expressApp(makeExpress),
  'Express 4': expressApp(makeExpress4),
  Koa: koaApp,
  Fastify: fastifyApp,
})
