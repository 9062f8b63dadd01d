import { createServer, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import type { Readable } from 'node:stream'
import type { Limiter, Verdict } from '@sluice/core'
import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import makeExpress, { type Express, type Request, type Response } from 'express'
import makeExpress4 from 'express4'
import makeFastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import Koa from 'koa'
import type { AnyOptions } from './app.js'
import { appsByEffort } from './by-effort.js'

/** A request whose handler runs. */
export interface Handling {
  /** The raw response, of HTTP/1 or HTTP/2. */
  readonly raw: ServerResponse
  readonly verdict: Verdict | undefined
  /** Sets the status in the framework's own way. */
  setStatus(status: number): void
}

export interface PermitHandlers {
  /** Responds to `/` in the framework's own way, with a text or a stream. */
  answer?(handling: Handling): Promise<string | Readable>
  /** Responds to `/raw` through the raw response, at any time. */
  takeOver?(handling: Handling): void
}

export interface PermitApp {
  readonly server: Server
  /** The limiter of the first options. */
  readonly limiter: Limiter<string>
}

/** One app with limiters on all paths, one behind the other. */
export type PermitAppFactory = (limiters: readonly AnyOptions[], handlers: PermitHandlers) => Promise<PermitApp>

const idle: Required<PermitHandlers> = { answer: async () => 'done', takeOver: ({ raw }) => void raw.end('done') }

const expressApp =
  (make: () => Express): PermitAppFactory =>
  async (options, handlers) => {
    const { answer, takeOver } = { ...idle, ...handlers }
    const app = make()
    const limiters = options.map((each) => express.rateLimit(each as never))
    for (const limiter of limiters) app.use(limiter)
    const handling = (req: Request, res: Response): Handling => ({
      raw: res,
      verdict: req.rateLimit,
      setStatus: (status) => void res.status(status),
    })
    app.all('/raw', (req, res) => takeOver(handling(req, res)))
    app.all('/', (req, res, next) => {
      answer(handling(req, res)).then((body) => {
        if (typeof body === 'string') res.send(body)
        else body.pipe(res).on('close', () => body.destroy())
      }, next)
    })
    return { server: createServer(app), limiter: limiters[0]?.limiter as never }
  }

const koaApp =
  (serve: (app: Koa) => Server): PermitAppFactory =>
  async (options, handlers) => {
    const { answer, takeOver } = { ...idle, ...handlers }
    const app = new Koa()
    app.on('error', () => {})
    const limiters = options.map((each) => koa.rateLimit(each as never))
    for (const limiter of limiters) app.use(limiter)
    app.use(async (ctx) => {
      const setStatus = (status: number) => {
        ctx.status = status
      }
      const handling = { raw: ctx.res, verdict: ctx.state.rateLimit, setStatus }
      if (ctx.path === '/raw') {
        ctx.respond = false
        takeOver(handling)
      } else ctx.body = await answer(handling)
    })
    return { server: serve(app), limiter: limiters[0]?.limiter as never }
  }

const fastifyApp =
  (make: () => FastifyInstance): PermitAppFactory =>
  async (options, handlers) => {
    const { answer, takeOver } = { ...idle, ...handlers }
    const app = make()
    for (const each of options) await app.register(fastify.rateLimit, each as never)
    const handling = (request: FastifyRequest, reply: FastifyReply): Handling => ({
      raw: reply.raw,
      verdict: request.rateLimit,
      setStatus: (status) => void reply.code(status),
    })
    app.all('/raw', (request, reply) => {
      reply.hijack()
      takeOver(handling(request, reply))
    })
    app.all('/', (request, reply) => answer(handling(request, reply)))
    await app.ready()
    return { server: app.server, limiter: app.rateLimit.limiter as never }
  }

export const PERMIT_APPS: Readonly<Record<string, PermitAppFactory>> = appsByEffort({
  'Express 5': expressApp(makeExpress),
  'Express 4': expressApp(makeExpress4),
  Koa: koaApp((app) => createServer(app.callback())),
  Fastify: fastifyApp(() => makeFastify()),
})

export const PERMIT_APPS_HTTP2: Readonly<Record<string, PermitAppFactory>> = {
  'Koa over HTTP/2': koaApp((app) => createHttp2Server(app.callback())),
  'Fastify over HTTP/2': fastifyApp(() => makeFastify({ http2: true }) as unknown as FastifyInstance),
}

/** Listens and returns the port. */
export async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}
