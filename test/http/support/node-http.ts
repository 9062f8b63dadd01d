import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Verdict } from '@sluice/core'
import {
  createGuard,
  enforce,
  type Guard,
  noSignedCookies,
  type Outcome,
  pathOf,
  RequestContext,
  writeOutcome,
} from '@sluice/core/http'
import type { AnyOptions, AppFactory } from './app.js'

// An adapter for plain `node:http`, and an app with it: the effort of a fourth framework.

interface Incoming extends IncomingMessage {
  rateLimit?: Verdict
  /** The client's address, if a proxy is trusted. */
  forwardedFor?: string | undefined
}

class NodeContext extends RequestContext<Incoming> {
  readonly response: ServerResponse
  /** There is no router. */
  readonly route = undefined

  constructor(request: Incoming, response: ServerResponse) {
    super(request)
    this.response = response
  }

  get ip(): string | undefined {
    return this.request.forwardedFor ?? this.request.socket.remoteAddress
  }

  signedCookie(): never {
    throw noSignedCookies('node:http has none')
  }
}

type Middleware = (req: Incoming, res: ServerResponse, next: (error?: unknown) => void) => void

function rateLimit(options: AnyOptions): Middleware & Pick<Guard<Incoming>, 'limiter'> {
  const guard: Guard<Incoming> = createGuard(options)
  const middleware: Middleware = (req, res, next) => enforce(guard, new NodeContext(req, res), { write }, next)
  return Object.assign(middleware, { limiter: guard.limiter })
}

function write(outcome: Outcome, { request, response }: NodeContext): void {
  if (outcome.verdict) request.rateLimit = outcome.verdict
  writeOutcome(outcome, response)
}

export const nodeApp: AppFactory = async ({ global = [], routes = {}, presetHeaders = {}, trustProxy = false }) => {
  const ran: string[] = []
  const errors: unknown[] = []
  const verdicts: unknown[] = []
  const globals = global.map(rateLimit)
  const own = new Map(Object.entries(routes).map(([path, { limiters = [] }]) => [path, limiters.map(rateLimit)]))

  const handle: Middleware = (req, res, next) => {
    const path = pathOf(req.url ?? '/')
    const route = routes[path]
    if (!route) {
      res.writeHead(404).end()
      return
    }
    ran.push(path)
    verdicts.push(req.rateLimit)
    const respond = async () => (await route.handler?.()) ?? 'done'
    respond().then((text) => res.setHeader('Content-Type', 'text/plain; charset=utf-8').end(text), next)
  }

  const server = createServer((req: Incoming, res) => {
    for (const [name, value] of Object.entries(presetHeaders)) res.setHeader(name, value)
    if (trustProxy) req.forwardedFor = req.headers['x-forwarded-for']?.toString().split(',')[0]?.trim()
    const chain = [...globals, ...(own.get(pathOf(req.url ?? '/')) ?? []), handle]
    const next = (error?: unknown): void => {
      if (error === undefined) {
        chain.shift()?.(req, res, next)
        return
      }
      errors.push(error)
      res.statusCode = 500
      res.setHeader('Content-Type', 'text/plain; charset=utf-8').end(`error ${(error as { code?: string }).code}`)
    }
    next()
  })
  const limiters = [...globals, ...[...own.values()].flat()].map(({ limiter }) => limiter as never)
  return { server, ran, errors, verdicts, limiters }
}
