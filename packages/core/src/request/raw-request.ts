import type { IncomingMessage } from 'node:http'
import type { HttpContext } from './context.js'

/** The raw request behind a context. */
export function rawRequest(context: HttpContext<never>): IncomingMessage | undefined {
  return context.response.req as IncomingMessage | undefined
}
