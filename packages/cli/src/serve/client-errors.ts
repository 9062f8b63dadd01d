import { type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Dialect } from './dialects/dialect.js'

const STATUS: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_HEADER_OVERFLOW: 431,
}
const SENTENCES: Readonly<Record<number, string>> = {
  400: 'expected a request in HTTP/1.1',
  408: 'the request took too long',
  413: 'expected fewer chunk extensions',
  431: 'expected fewer bytes of headers',
}

/**
 * The time, in ms, for which further data is read before a connection is closed. If it closed at once, the last response could
 * be lost.
 */
const LINGER_MS = 1000

/**
 * Responds to data that is no request, or none in time, and ends its connection. A gateway passes on its client's data. Only a
 * timeout is the gateway's own fault.
 */
export function refuseUnreadable(server: Server, refusalOf: Dialect['refusalOf']): void {
  /** Requests without a response, by connection. */
  const open = new WeakMap<object, number>()
  const ending = new WeakSet<Duplex>()
  server.on('request', ({ socket }, response: ServerResponse) => {
    open.set(socket, (open.get(socket) ?? 0) + 1)
    response.once('close', () => open.set(socket, (open.get(socket) ?? 1) - 1))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    // More of the unreadable data.
    if (ending.has(socket)) return
    // A response sent now would be taken for that to a request before it.
    const isFree = !open.get(socket)
    if (error.code === 'ECONNRESET' || !socket.writable || !isFree) {
      socket.destroy()
      return
    }
    const status = STATUS[error.code ?? ''] ?? 400
    const text = `${SENTENCES[status]}\n`
    const refusal = (status !== 408 && refusalOf?.(status, 'none')) || { status, headers: [] }
    const head = [
      `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
      ...refusal.headers.map(([name, value]) => `${name}: ${value}`),
      'Connection: close',
      'Content-Type: text/plain; charset=utf-8',
      `Content-Length: ${text.length}`,
    ]
    ending.add(socket)
    socket.end(`${head.join('\r\n')}\r\n\r\n${text}`)
    const timer = setTimeout(() => socket.destroy(), LINGER_MS)
    socket.once('close', () => clearTimeout(timer))
  })
}
