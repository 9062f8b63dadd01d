import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { HOST } from './redis-server.js'

/** The handling of bytes in one direction. */
export interface Direction {
  /** Holds bytes, with open connections, until `pass`: a network that swallows everything. */
  hold(): void
  /** Passes bytes again, held ones first, each chunk `delayMs` late. */
  pass(delayMs?: number): void
  /** The number of bytes that arrived for this direction so far. */
  readonly bytes: number
}

/** A wire to a Redis that can be slowed, blocked in either direction, and cut. */
export interface Wire {
  readonly port: number
  readonly toServer: Direction
  readonly toClient: Direction
  /** The number of open connections. */
  readonly connections: number
  /** Swallows everything that present connections send, for ever; they stay open. New ones work. */
  silence(): void
  /** Breaks every connection at once, with all held bytes; new ones are accepted. */
  cut(): void
  /** Half-closes both ends of every connection, and still reads; new ones work. */
  halfClose(): void
  stop(): Promise<void>
}

export async function startProxy(targetPort: number): Promise<Wire> {
  const toServer = new Way()
  const toClient = new Way()
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(targetPort, HOST)
    join(client, upstream, toServer, sockets)
    join(upstream, client, toClient, sockets)
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, HOST, resolve))
  const cut = () => {
    toServer.drop()
    toClient.drop()
    for (const socket of sockets) socket.resetAndDestroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    toServer,
    toClient,
    get connections() {
      return sockets.size / 2
    },
    silence() {
      for (const socket of sockets) socket.removeAllListeners('data').on('data', () => {})
    },
    cut,
    halfClose() {
      for (const socket of sockets) socket.end()
    },
    stop: () => closed(server, cut),
  }
}

class Way implements Direction {
  bytes = 0
  #held: (() => void)[] | undefined
  #delayMs = 0

  hold(): void {
    this.#held ??= []
  }

  pass(delayMs = 0): void {
    this.#delayMs = delayMs
    const held = this.#held ?? []
    this.#held = undefined
    for (const send of held) send()
  }

  drop(): void {
    if (this.#held) this.#held = []
  }

  send(to: Socket, chunk: Buffer): void {
    this.bytes += chunk.length
    const write = () => {
      if (!to.destroyed) to.write(chunk)
    }
    if (this.#held) this.#held.push(write)
    else if (this.#delayMs > 0) setTimeout(write, this.#delayMs)
    else write()
  }
}

function join(from: Socket, to: Socket, way: Way, sockets: Set<Socket>): void {
  sockets.add(from)
  from.setNoDelay(true)
  from.on('data', (chunk: Buffer) => way.send(to, chunk))
  from.on('error', () => {})
  from.on('close', () => {
    sockets.delete(from)
    to.destroy()
  })
}

function closed(server: Server, cut: () => void): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    cut()
  })
}
