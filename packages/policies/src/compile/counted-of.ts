import type { HttpContext, KeyFunction } from '@sluice/core'

/** The value of a kind that is counted for a client, by the key of the kind. May be a promise. */
// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
export type CountedOf = (kind: string, key: KeyFunction<any>) => unknown

/** That of a request. */
// biome-ignore lint/suspicious/noExplicitAny: as above
export function countedIn(context: HttpContext<any>): CountedOf {
  return (_kind, key) => key(context.request, context)
}
