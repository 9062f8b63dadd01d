import { IncomingMessage, type Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { HttpContext, LimitForm } from '@sluice/core'
import * as expressAdapter from '@sluice/express'
import * as fastifyAdapter from '@sluice/fastify'
import * as koaAdapter from '@sluice/koa'
import express from 'express'
import express4 from 'express4'
import fastify from 'fastify'
import Koa from 'koa'
import type { AnyOptions } from '../../../http/support/app.js'

/** Apps of every framework that trust one proxy or none, limit by `options` and respond with `done`. */
export async function appsWith(options: AnyOptions, believesProxy: boolean): Promise<Record<string, Server>> {
  const { createServer } = await import('node:http')
  const expressApp = (make: typeof express) => {
    const app = make()
    app.set('trust proxy', believesProxy ? 1 : false)
    app.use(expressAdapter.rateLimit(options as never))
    app.use((_req, res) => void res.end('done'))
    app.use(((error, _req, res, _next) => {
      res.statusCode = 500
      res.end(String(error.code))
    }) as import('express').ErrorRequestHandler)
    return createServer(app)
  }
  const koa = new Koa({ proxy: believesProxy, maxIpsCount: 1 })
  koa.silent = true
  koa.use(koaAdapter.rateLimit(options as never))
  koa.use((ctx) => {
    ctx.body = 'done'
  })
  const fast = fastify({ trustProxy: believesProxy ? (_address: string, hop: number) => hop === 0 : false })
  await fast.register(fastifyAdapter.rateLimit, options as never)
  fast.all('/*', async () => 'done')
  await fast.ready()
  return {
    'Express 5': expressApp(express),
    'Express 4': expressApp(express4),
    Koa: createServer(koa.callback()),
    Fastify: fast.server,
  }
}

/** Passes a request to a server without a connection. Resolves when the framework has finished it. */
export function hand(
  server: Server,
  remoteAddress: string | undefined,
  headers: Record<string, string>,
): Promise<number> {
  const socket = new Socket()
  Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress })
  const request = new IncomingMessage(socket)
  Object.assign(request, { method: 'GET', url: '/', httpVersion: '1.1', httpVersionMajor: 1, httpVersionMinor: 1 })
  Object.assign(request.headers, { host: 'x', ...headers })
  request.push(null)
  const response = new ServerResponse(request)
  return new Promise((resolve) => {
    const end = response.end as (...args: unknown[]) => ServerResponse
    response.end = ((...args: unknown[]) => {
      end.apply(response, args)
      resolve(response.statusCode)
      return response
    }) as typeof response.end
    server.emit('request', request, response)
  })
}

/** The key of a request, or the code of its error. */
export interface Seen {
  key?: string
  code?: string
}

/** Options of a limiter that refuses no request and records the key of each. */
export function noting(key: (request: unknown, context: HttpContext) => unknown, seen: Seen): AnyOptions & LimitForm {
  return {
    limit: 1,
    window: 1,
    skip(request: unknown, context: HttpContext) {
      delete seen.key
      delete seen.code
      try {
        seen.key = String(key(request, context))
      } catch (error) {
        seen.code = String((error as { code?: unknown }).code)
      }
      return true
    },
  }
}
