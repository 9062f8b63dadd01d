import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { BadInput } from './bad-input.js'
import * as bounds from './bounds.js'
import { refuseUnreadable } from './client-errors.js'
import type { Dialect } from './dialects/dialect.js'

/** Responds to a request to one path. @throws BadInput, at once or later, before anything is sent */
export type Answer = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>

export interface ServerSettings {
  readonly host: string
  readonly port: number
  /** PEM. Undefined without TLS. With `ca`, clients have to show a certificate of it. */
  readonly tls: { readonly cert: string; readonly key: string; readonly ca?: string } | undefined
  readonly maxConnections: number
  /** The routes, by path. */
  readonly routes: ReadonlyMap<string, Answer>
  readonly refusalOf: Dialect['refusalOf']
  /** Throws `BadInput` for a host that is not this server's. */
  readonly checkHost: ((request: IncomingMessage) => void) | undefined
  /** Aborted before it ends. From then on each response ends its connection, so that callers connect elsewhere. */
  readonly leaving: AbortSignal | undefined
  /** Called with failures of the decider and mistakes of callers: one of a few kinds, and a sentence. */
  readonly onProblem: (kind: string, message: string) => void
}

/** A decider's server while it runs. */
export interface RunningServer {
  readonly port: number
  /** Takes no more requests, and resolves once those under way have responses; at the latest after `withinMs`. */
  close(withinMs: number): Promise<void>
}

/** @throws what Node does where it cannot listen */
export async function startServer(settings: ServerSettings): Promise<RunningServer> {
  const { leaving } = settings
  const open = new Set<ServerResponse>()
  const server = serverFor(settings, (request, response) => {
    // A caller that has left has no address. It reads no response, and is charged for none.
    if (request.socket.remoteAddress === undefined) {
      request.socket.destroy()
      return
    }
    open.add(response)
    response.once('close', () => open.delete(response))
    if (leaving?.aborted) response.setHeader('Connection', 'close')
    answer(request, response, settings)
  })
  leaving?.addEventListener('abort', () => {
    for (const response of open) if (!response.headersSent) response.setHeader('Connection', 'close')
  })
  await listening(server, settings)
  return {
    port: (server.address() as AddressInfo).port,
    async close(withinMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeIdleConnections()
      const timer = setTimeout(() => server.closeAllConnections(), withinMs)
      await closed
      clearTimeout(timer)
    },
  }
}

function serverFor({ tls, maxConnections, refusalOf }: ServerSettings, listener: (...args: Exchange) => void): Server {
  const options: ServerOptions = {
    // Independent of NODE_OPTIONS: two lengths in one request are two requests to some proxy.
    insecureHTTPParser: false,
    maxHeaderSize: bounds.MAX_HEADER_BYTES,
    headersTimeout: bounds.HEADERS_WITHIN_MS,
    requestTimeout: bounds.REQUEST_WITHIN_MS,
    connectionsCheckingInterval: bounds.LOOK_EVERY_MS,
    keepAliveTimeout: bounds.IDLE_MS,
  }
  const server = tls
    ? createTlsServer(
        { ...options, ...tls, handshakeTimeout: bounds.HEADERS_WITHIN_MS, ...(tls.ca && { requestCert: true }) },
        listener,
      )
    : createServer(options, listener)
  server.maxConnections = maxConnections
  // Node silently drops headers beyond its own bound, and they may be the gateway's: lines are counted here.
  server.maxHeadersCount = 0
  server.timeout = bounds.SILENT_MS
  refuseUnreadable(server, refusalOf)
  return server
}

type Exchange = [request: IncomingMessage, response: ServerResponse]

function answer(request: IncomingMessage, response: ServerResponse, settings: ServerSettings): void {
  const failed = (error: unknown) => refuse(error, response, settings)
  try {
    const answered = routeOf(request, settings)(request, response)
    answered?.catch(failed)
  } catch (error) {
    failed(error)
  }
}

/** @throws BadInput */
function routeOf(request: IncomingMessage, { routes, checkHost }: ServerSettings): Answer {
  const { url, rawHeaders } = request
  checkHost?.(request)
  // Caddy adds the client's query.
  const route = routes.get(pathIn(url))
  if (!route) throw new BadInput(404, `expected ${[...routes.keys()].join(', ')}`, { ends: true })
  if (rawHeaders.length > 2 * bounds.MAX_HEADERS) {
    throw new BadInput(431, `expected at most ${bounds.MAX_HEADERS} headers`, { ends: true, byClient: true })
  }
  return route
}

/** As it was sent: nothing is decoded, and no other form is accepted. */
function pathIn(url = ''): string {
  const query = url.indexOf('?')
  return query < 0 ? url : url.slice(0, query)
}

function refuse(error: unknown, response: ServerResponse, { refusalOf, onProblem }: ServerSettings): void {
  // The caller has left, or has sent less than it said.
  if (response.destroyed || response.headersSent) return
  const input = error instanceof BadInput ? error : new BadInput(500, 'the decider failed', { ends: true })
  const { status, message: detail, ends, byClient } = input
  const refusal = (byClient && refusalOf?.(status, 'none')) || undefined
  if (input !== error) onProblem('500', String((error as Error)?.stack ?? error))
  else if (refusal) onProblem(`client ${status}`, `a request of a client was refused with ${status}: ${detail}`)
  else onProblem(String(status), `a request to the decider was refused: ${detail}`)
  const body = JSON.stringify({ type: 'about:blank', title: TITLES[status] ?? 'Bad Request', status, detail })
  response.statusCode = refusal?.status ?? status
  for (const [name, value] of refusal?.headers ?? []) response.setHeader(name, value)
  response.setHeader('Content-Type', 'application/problem+json; charset=utf-8')
  response.setHeader('Cache-Control', 'no-store')
  response.setHeader('Content-Length', Buffer.byteLength(body))
  if (status === 405) response.setHeader('Allow', 'GET, HEAD, POST')
  if (status === 401) response.setHeader('WWW-Authenticate', 'Bearer')
  if (ends) response.setHeader('Connection', 'close')
  response.end(body)
}

const TITLES: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  421: 'Misdirected Request',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
}

function listening(server: Server, { host, port, onProblem }: ServerSettings): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.removeListener('error', reject)
      // Such as too many open files: open connections are served.
      server.on('error', (error) => onProblem('500', `a connection could not be accepted: ${error.message}`))
      resolve()
    })
  })
}
