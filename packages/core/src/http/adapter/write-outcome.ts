import type { ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import type { Outcome } from '../guard/outcome.js'

/** Writes an outcome to Node's own response, and sends its reply where there is one. */
export function writeOutcome({ headers, reply }: Outcome, response: ServerResponse): void {
  for (const [name, value] of headers) response.setHeader(name, value)
  if (!reply) return
  response.statusCode = reply.status
  const { body } = reply
  if (typeof body === 'string' || body instanceof Uint8Array) response.end(body)
  else pipeline(body, response, ignore)
}

/** A stream that fails has ended the response by then. */
function ignore(): void {}
