import { connect, type Socket } from 'node:net'

/** A response with its exact bytes, which client libraries would normalise. */
export interface RawResponse {
  readonly status: number
  /** The head as received, without the value of `Date`. */
  readonly head: string
  readonly body: string
}

export interface RawRequest {
  readonly socket: Socket
  readonly sentAt: number
  /** Resolves when the server has ended the connection. */
  readonly response: Promise<RawResponse>
  /** Milliseconds from sending to the end of the response. */
  readonly took: Promise<number>
}

/** Sends one request over its own socket, which ends with the response. */
export async function rawRequest(
  port: number,
  method = 'GET',
  headers: Record<string, string> = {},
  target = '/',
): Promise<RawRequest> {
  const socket = connect(port, '127.0.0.1')
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk)).on('error', () => {})
  const sentAt = performance.now()
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines.join('')}\r\n`)
  const response = new Promise<RawResponse>((resolve) => {
    socket.once('close', () => resolve(parse(Buffer.concat(chunks).toString('latin1'))))
  })
  return { socket, sentAt, response, took: response.then(() => performance.now() - sentAt) }
}

function parse(text: string): RawResponse {
  const end = text.indexOf('\r\n\r\n')
  const head = text.slice(0, end).replace(/(\r\nDate: )[^\r]*/i, '$1…')
  return { status: Number(head.split(' ')[1]), head, body: text.slice(end + 4) }
}
