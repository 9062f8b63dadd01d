import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Limiter, Verdict } from '@sluice/core'
import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import makeExpress, { type Express, type NextFunction, type Request, type Response } from 'express'
import makeExpress4 from 'express4'
import makeFastify from 'fastify'
import Koa from 'koa'
import type { AnyOptions } from './app.js'
import { appsByEffort } from './by-effort.js'

/** A request as a handler of these apps sees it. */
export interface HandledRequest {
  readonly raw: IncomingMessage
  /** The verdict that the limiter passed to the handler. */
  readonly verdict: Verdict | undefined
  header(name: string): string | undefined
  /** The whole body, read with the framework's usual parser. */
  body(): Promise<string>
}

export type Answering = (handled: HandledRequest) => Promise<{ status: number; text: string }>

export interface BodyApp {
  readonly server: Server
  readonly limiter: Limiter<string>
  /** The errors that reached the framework's error handler. */
  readonly errors: unknown[]
  /** Requests whose handler ran. */
  readonly ran: HandledRequest[]
}

/** One app with one limiter on all paths, which responds to every method with the result of `answer`. */
export type BodyAppFactory = (options: AnyOptions, answer: Answering) => Promise<BodyApp>

const expressApp =
  (make: () => Express): BodyAppFactory =>
  async (options, answer) => {
    const errors: unknown[] = []
    const ran: HandledRequest[] = []
    const app = make()
    const limiter = express.rateLimit(options as never)
    app.use(limiter)
    app.use((req: Request, res: Response, next: NextFunction) => {
      const body = () =>
        new Promise<string>((resolve, reject) => {
          makeExpress.text({ type: () => true, limit: '1mb' })(req, res, (error?: unknown) => {
            if (error) reject(error)
            else resolve(typeof req.body === 'string' ? req.body : '')
          })
        })
      const handled = { raw: req, verdict: req.rateLimit, header: (name: string) => req.get(name), body }
      ran.push(handled)
      answer(handled)
        .then(({ status, text }) => res.status(status).type('text').send(text))
        .catch(next)
    })
    app.use((error: unknown, _req: Request, res: Response, next: NextFunction) => {
      errors.push(error)
      if (res.headersSent) next(error)
      else res.status(500).send('error')
    })
    return { server: createServer(app), limiter: limiter.limiter as never, errors, ran }
  }

const koaApp: BodyAppFactory = async (options, answer) => {
  const errors: unknown[] = []
  const ran: HandledRequest[] = []
  const app = new Koa()
  app.on('error', (error) => errors.push(error))
  const limiter = koa.rateLimit(options as never)
  app.use(limiter)
  app.use(async (ctx) => {
    const body = async () => {
      let text = ''
      for await (const chunk of ctx.req.setEncoding('utf8')) text += chunk
      return text
    }
    const handled = {
      raw: ctx.req,
      verdict: ctx.state.rateLimit,
      header: (name: string) => ctx.get(name) || undefined,
      body,
    }
    ran.push(handled)
    const { status, text } = await answer(handled)
    ctx.status = status
    ctx.body = text
  })
  return { server: createServer(app.callback()), limiter: limiter.limiter as never, errors, ran }
}

/** Its body is read before the handler runs, after the hooks. */
const fastifyApp: BodyAppFactory = async (options, answer) => {
  const errors: unknown[] = []
  const ran: HandledRequest[] = []
  const app = makeFastify()
  app.setErrorHandler((error, _request, reply) => {
    // The adapter hides details from clients in the cause.
    errors.push((error as Error).cause ?? error)
    reply.code(500).send('error')
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
  await app.register(fastify.rateLimit, options as never)
  app.all('/*', async (request, reply) => {
    const handled = {
      raw: request.raw,
      verdict: request.rateLimit,
      header: (name: string) => request.headers[name]?.toString(),
      body: async () => String(request.body ?? ''),
    }
    ran.push(handled)
    const { status, text } = await answer(handled)
    reply.code(status)
    return text
  })
  await app.ready()
  return { server: app.server, limiter: app.rateLimit.limiter as never, errors, ran }
}

export const BODY_APPS: Readonly<Record<string, BodyAppFactory>> = appsByEffort({
  'Express 5': expressApp(makeExpress),
  'Express 4': expressApp(makeExpress4),
  Koa: koaApp,
  Fastify: fastifyApp,
})
