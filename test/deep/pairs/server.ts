import { once } from 'node:events'
import { type IncomingMessage, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { PassThrough, type Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import type { Store, Verdict } from '@sluice/core'
import { type Handling, listen, PERMIT_APPS } from '../../http/support/permit-apps.js'
import type { Case, Request, Sent } from './case.js'
import { type Decided, methodsOf, type OverHttp, optionsOf, type Product } from './product.js'

export const SERVERS = Object.keys(PERMIT_APPS)

/** A request as frameworks have it. */
interface WithHeaders {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

class RequestByHand implements WithHeaders {
  readonly headers: WithHeaders['headers']

  constructor(request: Request) {
    this.headers = { 'x-request': JSON.stringify(request) }
  }
}

/** The policies of a case in front of a server on a port, with clients on sockets of their own. */
export async function servedBy(of: Case, store: Store): Promise<Product> {
  const exchanges: Exchange[] = []
  const exchangeOf = ({ headers }: WithHeaders) => exchanges[Number(headers['x-exchange'])] as Exchange
  const read = ({ headers }: WithHeaders): Request => JSON.parse(String(headers['x-request']))
  const { options, close } = await optionsOf(of, store, read as never)

  const onVerdict = (request: WithHeaders, verdict: Verdict) => {
    exchangeOf(request).verdict = verdict
  }
  const run = (handling: Handling) => exchangeOf(handling.raw.req).handle(handling)
  const make = PERMIT_APPS[of.server as string] as (typeof PERMIT_APPS)[string]
  const { server, limiter } = await make([{ ...options, onVerdict } as never], { answer: run, takeOver: run })

  const sockets = new Set<Socket>()
  // Clients stay connected while a busy machine does other things.
  Object.assign(server, { keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 })
  server.prependListener('connection', (socket: Socket) => sockets.add(socket))
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    exchangeOf(request).response = response
  })
  // As docs/websockets.md shows it.
  server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
    const response = new ServerResponse(request)
    response.assignSocket(socket)
    response.on('finish', () => socket.end())
    server.emit('request', request, response)
  })
  const port = await listen(server)

  return {
    ...methodsOf(of, limiter as never, (request) => new RequestByHand(request)),
    async request(request, behind) {
      const connection = behind ? (behind.overHttp as Exchange).connection : await Connection.to(port)
      const exchange = new Exchange(connection, request)
      exchanges.push(exchange)
      await exchange.send(exchanges.length - 1, request)
      return exchange.decided()
    },
    async close() {
      for (const { connection } of exchanges) connection.socket.destroy()
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      await close()
    },
  }
}

class Connection {
  /** That of the client. */
  readonly socket: Socket
  readonly exchanges: Exchange[] = []

  static async to(port: number): Promise<Connection> {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    await once(socket, 'connect')
    return new Connection(socket.resume())
  }

  private constructor(socket: Socket) {
    this.socket = socket
  }

  /** Waits until the server has sent all that can be sent, or has seen the end of the connection. */
  async whenQuiet(isReady = () => true): Promise<void> {
    await soon(() => this.#hasClosed() || (isReady() && this.#hasSent()))
    // What follows is done by then.
    await setImmediate()
    await setImmediate()
  }

  async whenClosed(): Promise<void> {
    await this.whenQuiet(() => this.#hasClosed())
  }

  #hasClosed(): boolean {
    return this.exchanges[0]?.response?.req.socket.destroyed === true
  }

  /** Responses leave in their order, so each waits for those before it. */
  #hasSent(): boolean {
    for (const { response } of this.exchanges) {
      if (!response?.writableEnded) return true
      if (!response.writableFinished) return false
    }
    return true
  }
}

/** A request, and what its handler does. */
class Exchange implements OverHttp {
  readonly connection: Connection
  response: ServerResponse | undefined
  verdict: Verdict | undefined
  #handling: Handling | undefined
  readonly #sent: Sent
  #respond: (body: string | Readable) => void = () => {}
  #fail: (error: Error) => void = () => {}
  #stream: PassThrough | undefined

  constructor(connection: Connection, sent: Sent) {
    this.connection = connection
    this.#sent = sent
    connection.exchanges.push(this)
  }

  async send(id: number, { raw, behind: _, upgrade, ...request }: Request & Sent): Promise<void> {
    const lines = [
      `GET ${raw || upgrade ? '/raw' : '/'} HTTP/1.1`,
      'Host: x',
      `X-Exchange: ${id}`,
      `X-Request: ${JSON.stringify(request)}`,
      ...(upgrade ? ['Connection: Upgrade', 'Upgrade: test'] : []),
      '\r\n',
    ]
    this.connection.socket.write(lines.join('\r\n'))
    await soon(() => this.#handling ?? this.response?.writableEnded)
    await this.connection.whenQuiet()
  }

  decided(): Decided {
    return {
      proceeds: this.#handling !== undefined,
      verdict: this.#handling?.verdict ?? this.verdict,
      end: (status, by) => this.#end(status, by),
      overHttp: this,
    }
  }

  get head(): string {
    return (this.response as unknown as { _header: string })._header
  }

  handle(handling: Handling): Promise<string | Readable> {
    this.#handling = handling
    return new Promise((resolve, reject) => {
      this.#respond = resolve
      this.#fail = reject
    })
  }

  async begin(status: number): Promise<void> {
    const { raw, setStatus } = this.#handling as Handling
    if (this.#sent.raw) raw.writeHead(status).write('begun')
    else {
      setStatus(status)
      this.#stream = new PassThrough()
      this.#stream.write('begun')
      this.#respond(this.#stream)
    }
    await soon(() => raw.headersSent)
  }

  async #end(status: number, by: 'error' | 'destroy' | undefined): Promise<void> {
    const { raw, setStatus } = this.#handling as Handling
    const { socket } = raw.req
    if (by === 'destroy') socket.destroy()
    else if (this.#sent.upgrade) upgrade(socket, status)
    else if (this.#stream) this.#stream.end()
    else if (this.#sent.raw) {
      if (!raw.headersSent) raw.statusCode = status
      raw.end('done')
    } else if (by === 'error') this.#fail(Object.assign(new Error('failed'), { status, statusCode: status }))
    else {
      setStatus(status)
      this.#respond('done')
    }
    await this.connection.whenQuiet(() => raw.writableEnded || (this.#sent.upgrade === true && status === 101))
  }

  async leave(isReset: boolean): Promise<void> {
    const { socket } = this.connection
    if (isReset) socket.resetAndDestroy()
    else socket.destroy()
    await this.connection.whenClosed()
  }
}

/** Responds to an upgrade past the response, as `ws` does. */
function upgrade(socket: Socket, status: number): void {
  if (status === 101) {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n')
    // A server leaves the connection half open otherwise.
    socket.once('end', () => socket.end()).resume()
  } else {
    socket.once('finish', () => socket.destroy())
    socket.end(`HTTP/1.1 ${status} No\r\nConnection: close\r\n\r\n`)
  }
}

const WITHIN_MS = 30_000

/** Waits for what comes within a ms or so. */
async function soon(look: () => unknown): Promise<void> {
  const deadline = performance.now() + WITHIN_MS
  while (!look()) {
    if (performance.now() > deadline) throw new Error('the server does not do what it was asked for')
    await setImmediate()
  }
}
