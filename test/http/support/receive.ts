import { type IncomingMessage, type RequestOptions, request } from 'node:http'

/** The part of a response that a client received. */
export interface Received {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  /** Whether all of it arrived; false if the connection ended early. */
  readonly isWhole: boolean
  readonly tookMs: number
}

/** Sends a request on its own connection, and reads until the end of the response or the connection. */
export function receive(port: number, options: RequestOptions = {}, by = request): Promise<Received> {
  return new Promise((resolve, reject) => {
    const began = performance.now()
    const sent = by({ host: '127.0.0.1', port, agent: false, ...options }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      // A body that was cut off is not whole: that is the result.
      response.on('error', () => {})
      response.on('close', () => {
        resolve({
          status: response.statusCode as number,
          headers: response.headers,
          body: Buffer.concat(chunks),
          isWhole: response.complete,
          tookMs: performance.now() - began,
        })
      })
    })
    sent.on('error', reject)
    sent.end()
  })
}
