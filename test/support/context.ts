import { EventEmitter } from 'node:events'
import type { HttpContext } from '@sluice/core'

/** A request without a framework: the given fields, and simple defaults. */
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
    target: '/',
    route: undefined,
    header: (name) => headers[name],
    signedCookie: () => undefined,
    getResponseHeader: () => undefined,
    ...rest,
  }
}
