import { type IncomingMessage, type RequestOptions, request } from 'node:http'

/** What a client got of a response. */
export interface Received {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  /** Whether all of it came: a connection that ended before is false. */
  readonly isWhole: boolean
  readonly tookMs: number
}

/** Asks on a connection of its own, and takes what comes, to the end of the response or of its connection. */
export function receive(port: number, options: RequestOptions = {}, by = request): Promise<Received> {
  return new Promise((resolve, reject) => {
    const began = performance.now()
    const asked = by({ host: '127.0.0.1', port, agent: false, ...options }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      // What was cut off is not whole: that is the outcome.
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
    asked.on('error', reject)
    asked.end()
  })
}
