import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { rateLimit as expressRateLimit } from '@sluice/express'
import { rateLimit as fastifyRateLimit } from '@sluice/fastify'
import { rateLimit as koaRateLimit } from '@sluice/koa'
import express, { type NextFunction, type Request, type Response } from 'express'
import fastify from 'fastify'
import Koa from 'koa'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** Options of a framework's `rateLimit`. Undefined for an app without it. */
type Options = object | undefined

/** Makes an app of a framework whose handler sends a status: `/401` that, and all else 200. Errors are 500. */
export type MakeApp = (options: Options) => Promise<Handler> | Handler

export const APPS: Readonly<Record<string, MakeApp>> = {
  Express: (options) => {
    const app = express()
    if (options) app.use(expressRateLimit(options as never))
    app.use((req: Request, res: Response) => res.status(statusFor(req.path)).send('done'))
    app.use((error: Error, _req: Request, res: Response, _next: NextFunction) => res.status(500).send(`${error}`))
    return app
  },
  Koa: (options) => {
    const app = new Koa()
    app.use(async (ctx, next) => {
      try {
        await next()
      } catch (error) {
        ctx.status = 500
        ctx.body = `${error}`
      }
    })
    if (options) app.use(koaRateLimit(options as never))
    app.use((ctx) => {
      ctx.status = statusFor(ctx.path)
      ctx.body = 'done'
    })
    return app.callback()
  },
  Fastify: async (options) => {
    let handler: Handler | undefined
    const serverFactory = (handle: Handler) => {
      handler = handle
      return createServer()
    }
    const app = fastify({ serverFactory: serverFactory as never })
    app.setErrorHandler((error: Error, _request, reply) =>
      reply.code(500).send(`${error.cause instanceof Error ? error.cause : error}`),
    )
    if (options) await app.register(fastifyRateLimit, options as never)
    app.get('/*', (request, reply) => reply.code(statusFor(request.url)).send('done'))
    await app.ready()
    return handler as unknown as Handler
  },
}

function statusFor(path: string): number {
  return Number(path.slice(1)) || 200
}

/**
 * One connection to a server in this process, both made before a prototype is polluted. The server passes requests to the app of
 * the moment.
 */
export class Connection {
  app: Handler | undefined
  readonly #server: Server
  #socket: Socket | undefined
  #received = ''
  #noteReceived = (): void => {}

  constructor() {
    this.#server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
      try {
        this.app?.(request, response)
      } catch (error) {
        response.statusCode = 500
        response.end(`${error}`)
      }
    })
  }

  async open(): Promise<void> {
    if (!this.#server.listening) await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    const { port } = this.#server.address() as { port: number }
    const socket = connect(port, '127.0.0.1')
    this.#socket = socket
    this.#received = ''
    socket.on('data', (data) => {
      this.#received += data.toString('latin1')
      this.#noteReceived()
    })
    socket.on('error', () => {})
    await new Promise<void>((resolve) => socket.once('connect', () => resolve()))
  }

  /** The response to a request, as sent. Rejects where none comes. */
  async get(path: string, headers = ''): Promise<string> {
    const socket = this.#socket as Socket
    this.#received = ''
    socket.write(`GET ${path} HTTP/1.1\r\nHost: app.example\r\n${headers}\r\n`)
    for (let tries = 0; tries < 10; tries++) {
      const whole = wholeResponse(this.#received)
      if (whole !== undefined) return whole
      if (socket.destroyed) throw new Error('no response: the connection is closed')
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 500)
        this.#noteReceived = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    throw new Error('no response')
  }

  async renew(): Promise<void> {
    this.#socket?.destroy()
    await this.open()
  }

  close(): void {
    this.#socket?.destroy()
    this.#server.close()
  }
}

/** A response with its body, once both are whole. Apps send each with its length. */
function wholeResponse(received: string): string | undefined {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const length = /^content-length: (\d+)/im.exec(received.slice(0, end))
  if (/^transfer-encoding: chunked/im.test(received.slice(0, end)))
    return received.endsWith('0\r\n\r\n') ? received : undefined
  return received.length >= end + 4 + Number(length?.[1] ?? 0) ? received : undefined
}
