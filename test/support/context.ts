import { EventEmitter } from 'node:events'
import type { HttpContext } from '@sluice/core'

/** A request of no framework: what is given, and the rest as plain as can be. */
export function contextOf(
  given: Partial<HttpContext> & { readonly headers?: Readonly<Record<string, string>> } = {},
): HttpContext {
  const { headers = {}, ...rest } = given
  return {
    request: {},
    response: new EventEmitter(),
    ip: undefined,
    method: 'GET',
    path: '/',
    route: undefined,
    header: (name) => headers[name],
    signedCookie: () => undefined,
    getResponseHeader: () => undefined,
    ...rest,
  }
}
