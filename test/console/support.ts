import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { type ConsoleOptions, consoleFor as onNode } from '@sluice/console'
import { consoleFor as onExpress } from '@sluice/console/express'
import { consoleFor as onFastify } from '@sluice/console/fastify'
import { consoleFor as onKoa } from '@sluice/console/koa'
import { type ManagedStore, redisStore } from '@sluice/core'
import express from 'express'
import express4 from 'express4'
import fastify, { type FastifyRequest } from 'fastify'
import { Redis } from 'ioredis'
import Koa from 'koa'
import { appsByEffort } from '../http/support/by-effort.js'

/** Middleware before the console, as Connect has it: each framework takes it. */
export type Before = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void

export type Options = Omit<ConsoleOptions<never>, 'authorize'> & {
  readonly authorize: (request: IncomingMessage) => unknown
}

/** Starts an app with the console at `/sluice`. */
export type StartApp = (options: Options, before?: readonly Before[]) => Promise<Server>

const onExpressOf =
  (make: typeof express): StartApp =>
  async (options, before = []) => {
    const app = make()
    for (const each of before) app.use(each as never)
    const handler = onExpress(options as never)
    app.use('/sluice', handler)
    return listening(createServer(app), handler)
  }

const koaApp: StartApp = async ({ authorize, ...options }, before = []) => {
  const app = new Koa()
  for (const each of before) {
    app.use(async (ctx, next) => {
      await new Promise<void>((resolve, reject) =>
        each(ctx.req, ctx.res, (error) => (error ? reject(error) : resolve())),
      )
      // As koa-bodyparser leaves it.
      Object.assign(ctx.request, { body: (ctx.req as { body?: unknown }).body })
      await next()
    })
  }
  const handler = onKoa({
    path: '/sluice',
    authorize: (ctx: Koa.Context) => authorize(ctx.req),
    ...(options as object),
  } as never)
  app.use(handler)
  return listening(createServer(app.callback()), handler)
}

const fastifyApp: StartApp = async ({ authorize, ...options }, before = []) => {
  const app = fastify()
  // A parser of bodies reads the stream before Fastify would.
  for (const each of before.filter(({ name }) => name !== 'jsonParser')) {
    app.addHook('onRequest', (request, reply, done) => each(request.raw, reply.raw, (error) => done(error as Error)))
  }
  await app.register(
    onFastify({ authorize: (request: FastifyRequest) => authorize(request.raw), ...(options as object) } as never),
    {
      prefix: '/sluice',
    },
  )
  await app.ready()
  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server
}

/** Below `/sluice`, as in the others. */
const nodeApp: StartApp = async (options, before = []) => {
  const handle = onNode(options as never)
  return listening(
    createServer((request, response) => {
      let at = 0
      const next = (): void => {
        const each = before.filter(({ name }) => name !== 'jsonParser')[at++]
        if (each) return each(request, response, next)
        request.url = (request.url ?? '').replace(/^\/sluice(?=\/|$)/, '') || '/'
        handle(request, response)
      }
      next()
    }),
    handle,
  )
}

export const APPS: Readonly<Record<string, StartApp>> = appsByEffort({
  'Express 5': onExpressOf(express),
  'Express 4': onExpressOf(express4 as never),
  Koa: koaApp,
  Fastify: fastifyApp,
  'node:http': nodeApp,
})

/** The console ends with its server. */
async function listening(server: Server, console: { close(): void }): Promise<Server> {
  server.once('close', () => console.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

/** Starts a console in Koa, which ends with `open`. Resolves to its port. */
export async function startConsole(options: Omit<Options, 'authorize'>, open: (() => unknown)[]): Promise<number> {
  const server = await (APPS.Koa as StartApp)({ ...options, authorize })
  open.push(
    () => new Promise((resolve) => server.close(resolve)),
    () => server.closeAllConnections(),
  )
  return portOf(server)
}

/** A store on a Redis, ready, with a client of its own: both end with `open`. */
export async function storeOnRedis(port: number, prefix: string, open: (() => unknown)[]): Promise<ManagedStore> {
  const client = new Redis(port)
  const store = redisStore(client, { prefix, timeout: 15_000 })
  open.push(
    () => client.disconnect(),
    () => store.close(),
  )
  await store.ready()
  return store
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: the JSON of any route
  readonly json: any
}

export interface Question {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** As JSON; a text is sent as it is. */
  readonly body?: unknown
}

/** Sends a request with exactly these headers, which `fetch` would not. Of a stream, it takes the first part. */
export function ask(port: number, path: string, { method, headers = {}, body }: Question = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
    const hasLength = text !== undefined && headers['transfer-encoding'] === undefined
    const length = hasLength ? { 'content-length': String(Buffer.byteLength(text)) } : {}
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        path,
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        headers: { ...length, ...headers },
        agent: false,
      },
      (response) => {
        const chunks: Buffer[] = []
        const isStream = /ndjson/.test(response.headers['content-type'] ?? '')
        response.on('error', reject).on('data', (chunk: Buffer) => {
          chunks.push(chunk)
          if (!isStream) return
          response.removeListener('error', reject).on('error', () => {})
          sent.destroy()
          response.emit('end')
        })
        response.on('end', () => {
          const received = Buffer.concat(chunks).toString()
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: received,
            json:
              !isStream && /json/.test(response.headers['content-type'] ?? '') && received !== ''
                ? JSON.parse(received)
                : undefined,
          })
        })
      },
    )
    sent.on('error', reject)
    sent.end(text)
  })
}

/** The headers of a page of the console, with the credential of an operator. */
export function asOperator(port: number, credential = 'ann'): Record<string, string> {
  return {
    authorization: credential,
    origin: `http://127.0.0.1:${port}`,
    'sec-fetch-site': 'same-origin',
  }
}

/** The same for a request with a body. */
export function withBody(port: number, credential = 'ann'): Record<string, string> {
  return { ...asOperator(port, credential), 'content-type': 'application/json', 'sluice-console': '1' }
}

/** Ann may act, Bob may read. */
export function authorize({ headers }: IncomingMessage): unknown {
  if (headers.authorization === 'ann') return { name: 'ann', may: 'act' }
  return headers.authorization === 'bob' ? { name: 'bob', may: 'read' } : undefined
}
