import type { IncomingMessage, ServerResponse } from 'node:http'
import { headerText } from '@sluice/core/http'
import { addressIn, clientIn, MAX_ADDRESSES, ownFieldsOf, type TrustedProxies } from '@sluice/core/internal'
import { BadInput } from '../bad-input.js'
import type { DecidedBy, Decision } from '../decision.js'
import type { DescribedRequest } from '../described-request.js'
import type { Dialect, Refusal } from './dialect.js'

/** The headers in which a gateway describes the request, in lower case. */
export interface DescribingHeaders {
  readonly method: string
  readonly uri: string
  readonly host: string
  /** An address, or a list that each proxy appends to. */
  readonly client: string
}

export interface GatewayOptions {
  readonly headers: DescribingHeaders
  /** The only status that the gateway takes for a refusal. The real one is in `X-Sluice-Status`. @default the real one */
  readonly refusedBy?: 403
}

/** A gateway that consults the decider before it passes a request on, with the client's own headers. */
export function gatewayDialect({ headers, refusedBy }: GatewayOptions): Dialect {
  const refusalOf = (status: number, decidedBy: DecidedBy): Refusal => ({
    status: refusedBy ?? status,
    headers: [
      ['X-Sluice-Decided-By', decidedBy],
      ['X-Sluice-Status', String(status)],
    ],
  })
  return {
    refusalOf,
    readsHeaders: true,
    namesKeys: false,
    proxyRemedy: 'name it in the gateway and in --trust-proxy',
    answer(request, response, { decide, trusted, token }) {
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        throw new BadInput(405, 'expected GET or HEAD: the method of the client comes in a header', { ends: true })
      }
      refuseBody(request)
      // None of these is 401 or 403, which gateways would pass on to clients, or take for a refusal.
      checkPeer(request, trusted)
      if (token && !token.is(single(request, TOKEN))) {
        throw new BadInput(400, 'expected the token of this decider in X-Sluice-Token')
      }
      const decision = decide(describe(request, headers, trusted))
      if (!(decision instanceof Promise)) send(decision, response, refusalOf)
      else return decision.then((late) => send(late, response, refusalOf))
    },
  }
}

const TOKEN = 'x-sluice-token'

/** A body that the decider does not read could be taken for the next request. */
function refuseBody({ headers }: IncomingMessage): void {
  const { 'content-length': length, 'transfer-encoding': encoding } = ownFieldsOf(headers)
  if (encoding === undefined && (length === undefined || length === '0')) return
  throw new BadInput(400, 'expected no body: the gateway is to leave it out', { ends: true })
}

function checkPeer({ socket }: IncomingMessage, trusted: TrustedProxies | undefined): void {
  const peer = addressIn(socket.remoteAddress ?? '')
  if (peer !== undefined && trusted?.has(peer)) return
  throw new BadInput(400, 'this gateway is not among --trust-proxy, so what it says of clients is not believed')
}

function describe(
  request: IncomingMessage,
  names: DescribingHeaders,
  trusted: TrustedProxies | undefined,
): DescribedRequest {
  const method = needed(request, names.method)
  if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,32}$/.test(method)) throw byClient('a method such as GET')
  const target = needed(request, names.uri)
  // Not \s: raw bytes of UTF-8, such as A0, are no space to a gateway.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
  if (/[\x00-\x20\x7f\\]/.test(target)) throw byClient('a path without spaces, control characters and backslashes')
  // A request of HTTP/1.0 may have none, and nginx leaves headers without a value out.
  const host = single(request, names.host)
  if (host === undefined || host === '') throw byClient('a request with a host')
  const list = headerText(ownFieldsOf(request.headers)[names.client])
  if (list === undefined) throw missing(names.client)
  const ip = trusted && clientIn(list, trusted)
  if (ip === undefined)
    throw wrong(names.client, `the client's address at its end, behind ${MAX_ADDRESSES - 1} proxies at most`)
  const { headers } = request
  return {
    method,
    target,
    ip,
    // The host of this request is the decider's.
    header: (name) => (name === 'host' ? host : Object.hasOwn(headers, name) ? headerText(headers[name]) : undefined),
  }
}

/** A header that comes once: one of two may be the client's. */
function single(request: IncomingMessage, name: string): string | undefined {
  let found: string | undefined
  const { rawHeaders } = request
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== name) continue
    if (found !== undefined) throw wrong(name, 'it once')
    found = rawHeaders[i + 1]
  }
  return found
}

function needed(request: IncomingMessage, name: string): string {
  const value = single(request, name)
  if (value === undefined || value === '') throw missing(name)
  return value
}

function missing(name: string): BadInput {
  return new BadInput(400, `expected the header ${name} of the gateway, which is missing`)
}

/** The client reads it, so it contains no header of the gateway. */
function byClient(expected: string): BadInput {
  return new BadInput(400, `expected ${expected}`, { byClient: true })
}

function wrong(name: string, expected: string): BadInput {
  return new BadInput(400, `header ${name}: expected ${expected}`)
}

function send(
  { allowed, status, decidedBy, headers, body }: Decision,
  response: ServerResponse,
  refusalOf: NonNullable<Dialect['refusalOf']>,
): void {
  for (const [name, value] of headers) response.setHeader(name, value)
  response.setHeader('Cache-Control', 'no-store')
  if (allowed) {
    response.setHeader('X-Sluice-Decided-By', decidedBy)
    response.statusCode = 204
    response.end()
    return
  }
  const refusal = refusalOf(status, decidedBy)
  for (const [name, value] of refusal.headers) response.setHeader(name, value)
  response.setHeader('Content-Length', Buffer.byteLength(body))
  response.statusCode = refusal.status
  response.end(body)
}
