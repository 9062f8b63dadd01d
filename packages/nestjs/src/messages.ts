import { createRequire } from 'node:module'
import type { ExecutionContext } from '@nestjs/common'
import { SluiceError } from '@sluice/core'
import { type HttpContext, headerText, noSignedCookies, type Outcome, type RawResponse } from '@sluice/core/http'
import { reasonPhrase, waitOf } from './exceptions.js'
import { refusalOf, refuseOptions } from './graphql.js'
import { InvocationResponse } from './invocation-response.js'
import type { NestGuard, NestRateLimitOptions, SocketOptions } from './options.js'

/** A socket of socket.io, or of ws. */
interface Client {
  readonly handshake?: { readonly address?: string; readonly headers?: Readonly<Record<string, string | string[]>> }
  readonly disconnected?: boolean
  readonly _socket?: { readonly remoteAddress?: string } | null
  /** 2 and 3: closing and closed. */
  readonly readyState?: number
  on(event: string, listener: () => void): unknown
  removeListener(event: string, listener: () => void): unknown
}

/** The core's view of a message over WebSockets, whose request is the client's socket. */
export class MessageContext implements HttpContext<object> {
  readonly request: Client
  readonly response: RawResponse
  readonly method = 'MESSAGE'
  /** The pattern of the message. */
  readonly route: string
  readonly proxyTrust = 'none'
  readonly proxyRemedy = 'read it in the option socketAddress'
  readonly #socketAddress: SocketOptions['socketAddress']

  constructor(execution: ExecutionContext, socketAddress: SocketOptions['socketAddress']) {
    const ws = execution.switchToWs()
    this.request = ws.getClient<Client>()
    this.route = String(ws.getPattern())
    this.response = new InvocationResponse(endOf(this.request))
    this.#socketAddress = socketAddress
  }

  /** @throws SluiceError `INVALID_POLICY` where nothing tells it */
  get ip(): string | undefined {
    if (this.#socketAddress) return this.#socketAddress(this.request)
    const { handshake, _socket } = this.request
    if (handshake) return handshake.address
    // Null when the connection has ended.
    if (_socket !== undefined) return _socket?.remoteAddress
    throw new SluiceError(
      'INVALID_POLICY',
      'socketAddress: expected a function, as this socket is neither of socket.io nor of ws and has no address',
    )
  }

  get path(): string {
    return `/${this.route}`
  }

  get target(): string {
    return this.path
  }

  /** A field of the handshake, which ws does not keep. */
  header(name: string): string | undefined {
    const { headers = {} } = this.request.handshake ?? {}
    return Object.hasOwn(headers, name) ? headerText(headers[name]) : undefined
  }

  signedCookie(): never {
    throw noSignedCookies('messages have no cookies')
  }

  getResponseHeader(): undefined {
    return undefined
  }
}

const ends = new WeakMap<Client, RawResponse>()

/** The end of a socket, as that of a response. */
function endOf(client: Client): RawResponse {
  let end = ends.get(client)
  if (!end) {
    const closing = client.handshake ? 'disconnect' : 'close'
    end = {
      get destroyed() {
        return client.disconnected === true || (client.readyState ?? 1) > 1
      },
      on: (event, listener) => event === 'close' && client.on(closing, listener),
      removeListener: (event, listener) => event === 'close' && client.removeListener(closing, listener),
    }
    ends.set(client, end)
  }
  return end
}

/**
 * A message has no status, and no end that a guard sees.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function checkForMessages(options: NestRateLimitOptions, { limiter, holdsPermits }: NestGuard): void {
  const of = 'messages, whose end no guard sees'
  refuseOptions(limiter.name, of, options, limiter)
  const option = options.policies ? 'policies' : holdsPermits ? 'concurrency' : undefined
  if (option) throw new SluiceError('INVALID_POLICY', `policy "${limiter.name}": ${option}: expected none for ${of}`)
}

/** @throws WsException, which Nest sends as the event `exception` */
export function refuseMessage(outcome: Outcome): Promise<never> {
  const { status, verdict } = refusalOf(outcome) ?? {}
  // The client has left.
  if (status === undefined) return new Promise(() => {})
  const { WsException } = load('@nestjs/websockets') as typeof import('@nestjs/websockets')
  throw new WsException({
    status: 'error',
    message: reasonPhrase(status),
    statusCode: status,
    ...waitOf(verdict),
  })
}

declare const __filename: string | undefined

/** In place of `import`: only gateways have the package, and under Jest a program in CommonJS has no `import()`. */
const load = createRequire(typeof __filename === 'string' ? __filename : import.meta.url)
