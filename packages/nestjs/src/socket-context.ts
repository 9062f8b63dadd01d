import type { IncomingMessage } from 'node:http'
import type { ExecutionContext } from '@nestjs/common'
import { SluiceError } from '@sluice/core'
import { type HttpContext, headerText, noSignedCookies, propertyOf, type RawResponse } from '@sluice/core/http'
import { UNSEEN_RESPONSE } from '@sluice/core/internal'
import type { SocketOptions } from './options.js'

interface Emitter {
  on(event: string, listener: () => void): unknown
  removeListener(event: string, listener: () => void): unknown
}

/** A socket of socket.io, or of ws. */
interface Client extends Emitter {
  readonly handshake?: { readonly address?: string; readonly headers?: IncomingMessage['headers'] }
  readonly disconnected?: boolean
  /** Of a socket of Node. */
  readonly destroyed?: boolean
  readonly _socket?: { readonly remoteAddress?: string } | null
  /** 2 and 3: closing and closed. */
  readonly readyState?: number | string
}

/** `extra` of a context of graphql-ws. */
export interface Subscriber {
  readonly request: IncomingMessage
  readonly socket: Client
}

interface SocketParts {
  /** The object that functions of the application get. */
  readonly request: object
  readonly client: Client
  readonly route: string
  readonly headers: IncomingMessage['headers'] | undefined
  /** The address that has connected. */
  readonly address: () => string | undefined
}

/** The core's view of a call over a WebSocket. */
export class SocketContext implements HttpContext<object> {
  readonly request: object
  readonly response: RawResponse
  readonly sharesResponse = true
  readonly keepsCharges = false
  readonly method = 'MESSAGE'
  readonly route: string
  readonly path: string
  readonly target: string
  readonly mountedRoute = undefined
  readonly mountPath = ''
  readonly proxyTrust = 'none'
  readonly proxyRemedy = 'read it in the option socketAddress'
  readonly #headers: IncomingMessage['headers']
  readonly #address: () => string | undefined

  constructor({ request, client, route, headers = {}, address }: SocketParts, { socketAddress }: SocketOptions) {
    this.request = request
    this.response = endOf(client)
    this.route = route
    this.path = `/${route}`
    this.target = this.path
    this.#headers = headers
    this.#address = socketAddress ? () => socketAddress(request) : address
  }

  get ip(): string | undefined {
    return this.#address()
  }

  /** A field of the handshake. */
  header(name: string): string | undefined {
    return Object.hasOwn(this.#headers, name) ? headerText(this.#headers[name]) : undefined
  }

  signedCookie(): never {
    throw noSignedCookies('calls over sockets have none')
  }

  getResponseHeader(): undefined {
    return undefined
  }
}

/** A message for a gateway. Its route is its pattern. */
export function messageContext(execution: ExecutionContext, options: SocketOptions): SocketContext {
  const ws = execution.switchToWs()
  const client = ws.getClient<Client>()
  const handshake = propertyOf(client, 'handshake')
  const parts = {
    client,
    request: client,
    route: String(ws.getPattern()),
    headers: handshake && propertyOf(handshake, 'headers'),
  }
  return new SocketContext({ ...parts, address: () => addressOf(client) }, options)
}

/** A GraphQL operation over a WebSocket. */
export function subscriptionContext({ request, socket }: Subscriber, options: SocketOptions): SocketContext {
  const parts = { client: socket, request, route: '(subscription)', headers: request.headers }
  return new SocketContext({ ...parts, address: () => request.socket.remoteAddress }, options)
}

/** @throws SluiceError `INVALID_POLICY` where nothing tells it */
function addressOf(client: Client): string | undefined {
  const [handshake, socket] = [propertyOf(client, 'handshake'), propertyOf(client, '_socket')]
  if (handshake) return handshake.address
  // Null when the connection has ended.
  if (socket !== undefined) return socket?.remoteAddress
  throw new SluiceError(
    'INVALID_POLICY',
    'socketAddress: expected a function, as this socket is neither of socket.io nor of ws and tells no address',
  )
}

const ends = new WeakMap<Client, RawResponse>()

/** The end of a socket, as that of a response. */
function endOf(client: Client): RawResponse {
  let end = ends.get(client)
  if (!end) {
    const closing = propertyOf(client, 'handshake') ? 'disconnect' : 'close'
    end = {
      ...UNSEEN_RESPONSE,
      get destroyed() {
        const isEnded = (['disconnected', 'destroyed'] as const).some((name) => propertyOf(client, name) === true)
        return isEnded || Number(propertyOf(client, 'readyState') ?? 1) > 1
      },
      on: (event, listener) => event === 'close' && client.on(closing, listener),
      removeListener: (event, listener) => event === 'close' && client.removeListener(closing, listener),
    }
    ends.set(client, end)
  }
  return end
}
