import { createServer, type Server } from 'node:http'
import type { Limiter, RateLimitError, Responder, Verdict } from '@sluice/core'
import * as expressAdapter from '@sluice/express'
import * as fastifyAdapter from '@sluice/fastify'
import * as koaAdapter from '@sluice/koa'
import express, { type Express, type NextFunction, type Request, type Response } from 'express'
import express4 from 'express4'
import fastify from 'fastify'
import Koa from 'koa'
import type { AnyOptions } from './app.js'
import { appsByEffort } from './by-effort.js'

/** A handler of refused requests, with the functions that all frameworks share. */
export type Refusing = (by: {
  readonly verdict: Verdict
  /** Sends JSON, with the present status unless one is given. */
  send(body: object, status?: number): unknown
  header(name: string): unknown
  /** Goes on to the route; undefined in Fastify, whose handlers cannot. */
  readonly proceed: (() => unknown) | undefined
}) => unknown

export interface NativeApp {
  readonly server: Server
  /**
   * The errors that reached the application's error handler, which responds with the error's status and its message in
   * `{ failed }`.
   */
  readonly errors: unknown[]
  /** How often the route `/` ran, which responds to every method with 200 and `ok`. */
  readonly ran: () => number
  readonly limiters: readonly Limiter<string>[]
}

export interface NativeFramework {
  /** An app with limiters on its only route; `ownErrors`: whether the application handles errors itself. */
  app(limiters: readonly AnyOptions[], ownErrors?: boolean): Promise<NativeApp>
  // biome-ignore lint/suspicious/noExplicitAny: each framework hands its own request to responders
  respondBy(handler: Refusing): Responder<any>
}

const expressFramework = (make: () => Express): NativeFramework => ({
  async app(limiters, ownErrors = true) {
    const errors: unknown[] = []
    let ran = 0
    const app = make()
    // No stack traces in responses, nor on the console.
    app.set('env', 'test')
    const made = limiters.map((options) => expressAdapter.rateLimit(options as never))
    app.all('/', ...made, (_req, res) => {
      ran++
      res.send('ok')
    })
    if (ownErrors) {
      app.use((error: Partial<RateLimitError>, _req: Request, res: Response, next: NextFunction) => {
        errors.push(error)
        if (res.headersSent) next(error)
        else res.status(error.status ?? 500).json({ failed: error.message })
      })
    }
    return { server: createServer(app), errors, ran: () => ran, limiters: made.map((each) => each.limiter as never) }
  },
  respondBy: (handler) =>
    expressAdapter.handler((_req, res, next, verdict) =>
      handler({
        verdict,
        send: (body, status) => (status === undefined ? res : res.status(status)).json(body),
        header: (name) => res.getHeader(name),
        proceed: next,
      }),
    ),
})

const koaFramework: NativeFramework = {
  async app(limiters, ownErrors = true) {
    const errors: unknown[] = []
    let ran = 0
    const app = new Koa()
    app.silent = true
    if (ownErrors) {
      app.use(async (ctx, next) => {
        try {
          await next()
        } catch (error) {
          errors.push(error)
          ctx.status = (error as Partial<RateLimitError>).status ?? 500
          ctx.body = { failed: (error as Error).message }
        }
      })
    }
    const made = limiters.map((options) => koaAdapter.rateLimit(options as never))
    for (const limiter of made) app.use(limiter)
    app.use((ctx) => {
      ran++
      ctx.body = 'ok'
    })
    return {
      server: createServer(app.callback()),
      errors,
      ran: () => ran,
      limiters: made.map((each) => each.limiter as never),
    }
  },
  respondBy: (handler) =>
    koaAdapter.handler((ctx, next, verdict) =>
      handler({
        verdict,
        send(body, status) {
          if (status !== undefined) ctx.status = status
          ctx.body = body
        },
        header: (name) => ctx.res.getHeader(name),
        proceed: next,
      }),
    ),
}

const fastifyFramework: NativeFramework = {
  async app(limiters, ownErrors = true) {
    const errors: unknown[] = []
    let ran = 0
    const app = fastify()
    if (ownErrors) {
      app.setErrorHandler((error: Partial<RateLimitError>, _request, reply) => {
        // The adapter hides details from clients in the cause.
        errors.push(error.message === 'The rate limiter failed' ? error.cause : error)
        return reply.code(error.statusCode ?? 500).send({ failed: error.message })
      })
    }
    await app.register(fastifyAdapter.rateLimit, { global: false })
    const made = limiters.map((options) => app.rateLimit(options as never))
    app.all('/', { onRequest: made }, async () => {
      ran++
      return 'ok'
    })
    await app.ready()
    return { server: app.server, errors, ran: () => ran, limiters: made.map((each) => each.limiter as never) }
  },
  respondBy: (handler) =>
    fastifyAdapter.handler((_request, reply, verdict) =>
      handler({
        verdict,
        send: (body, status) => (status === undefined ? reply : reply.code(status)).send(body),
        header: (name) => reply.getHeader(name),
        proceed: undefined,
      }),
    ),
}

export const NATIVE: Readonly<Record<string, NativeFramework>> = appsByEffort({
  'Express 5': expressFramework(express),
  'Express 4': expressFramework(express4),
  Koa: koaFramework,
  Fastify: fastifyFramework,
})
