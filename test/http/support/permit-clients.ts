import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, type Http2Server } from 'node:http2'
import { connect, type Server } from 'node:net'
import type { Readable } from 'node:stream'

/** A request on its own connection, or over HTTP/2 on its own stream. */
export interface SentRequest {
  /** Resolves with the status of the response. */
  readonly status: Promise<number>
  /** The incoming bytes, before any are read: over HTTP/1 with the head. */
  readonly incoming: Readable
  /** Resolves when no more bytes can arrive. */
  readonly closed: Promise<unknown>
  leave(): void
}

export interface PermitClient {
  ask(path?: string, method?: string): Promise<SentRequest>
  close(): void
}

/** Reads until at least so many more bytes have arrived. */
export async function read(incoming: Readable, bytes: number): Promise<void> {
  for (let got = 0; got < bytes; ) {
    const chunk = incoming.read()
    if (chunk === null) await once(incoming, 'readable')
    else got += chunk.length
  }
}

export function http1Client(port: number): PermitClient {
  const leaving: (() => void)[] = []
  return {
    async ask(path = '/', method = 'GET') {
      const socket = connect(port, '127.0.0.1').on('error', () => {})
      const leave = () => void socket.destroy()
      leaving.push(leave)
      await once(socket, 'connect')
      socket.write(`${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
      const status = new Promise<number>((resolve) => {
        // The head alone, so that the rest stays unread.
        socket.once('readable', () => {
          const head: Buffer | null = socket.read(12)
          if (head) resolve(Number(head.toString('latin1').slice(9)))
        })
      })
      return { status, incoming: socket, closed: once(socket, 'close'), leave }
    },
    close: () => {
      for (const leave of leaving) leave()
    },
  }
}

export function http2Client(port: number): PermitClient {
  const session: ClientHttp2Session = connectHttp2(`http://127.0.0.1:${port}`).on('error', () => {})
  return {
    async ask(path = '/', method = 'GET') {
      const stream: ClientHttp2Stream = session.request({ ':path': path, ':method': method }, { endStream: true })
      stream.on('error', () => {})
      const status = new Promise<number>((resolve) => {
        stream.on('response', (headers) => resolve(Number(headers[':status'])))
      })
      return { status, incoming: stream, closed: once(stream, 'close'), leave: () => stream.close(8) }
    },
    close: () => session.destroy(),
  }
}

/** Ends a server with everything on it. */
export function stop(server: Server | Http2Server): void {
  server.close()
  if ('closeAllConnections' in server) (server as { closeAllConnections(): void }).closeAllConnections()
}
