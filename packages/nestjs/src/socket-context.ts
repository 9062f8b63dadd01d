import type { IncomingMessage } from 'node:http'
import type { ExecutionContext } from '@nestjs/common'
import { SluiceError } from '@sluice/core'
import { type HttpContext, headerText, noSignedCookies, type RawResponse } from '@sluice/core/http'
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
  readonly method = 'MESSAGE'
  readonly route: string
  readonly path: string
  readonly target: string
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
  const { handshake } = client
  const parts = { client, request: client, route: String(ws.getPattern()), headers: handshake?.headers }
  return new SocketContext({ ...parts, address: () => addressOf(client) }, options)
}

/** A GraphQL operation over a WebSocket. */
export function subscriptionContext({ request, socket }: Subscriber, options: SocketOptions): SocketContext {
  const parts = { client: socket, request, route: '(subscription)', headers: request.headers }
  return new SocketContext({ ...parts, address: () => request.socket.remoteAddress }, options)
}

/** @throws SluiceError `INVALID_POLICY` where nothing tells it */
function addressOf({ handshake, _socket }: Client): string | undefined {
  if (handshake) return handshake.address
  // Null when the connection has ended.
  if (_socket !== undefined) return _socket?.remoteAddress
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
    const closing = client.handshake ? 'disconnect' : 'close'
    end = {
      get destroyed() {
        return client.disconnected === true || client.destroyed === true || Number(client.readyState ?? 1) > 1
      },
      on: (event, listener) => event === 'close' && client.on(closing, listener),
      removeListener: (event, listener) => event === 'close' && client.removeListener(closing, listener),
    }
    ends.set(client, end)
  }
  return end
}
