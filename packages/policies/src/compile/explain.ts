import { isIP } from 'node:net'
import { type HttpContext, SluiceError } from '@sluice/core'
import { pathOf, propertyOf, UNSEEN_RESPONSE } from '@sluice/core/internal'
import type { QuotaUnit } from '@sluice/core/store'
import { shown } from '../problems/problem.js'

/** A request to explain. Parts that are not given are absent. */
export interface RequestToExplain {
  /** @default 'GET' */
  readonly method?: string
  /** The path, or a whole URL: its query does not count, and neither does its host, which is a header. */
  readonly path: string
  /** By their names, in any case. */
  readonly headers?: Readonly<Record<string, string>>
  readonly ip?: string
  /** The request for resolvers. */
  readonly request?: unknown
}

/** How a policy applies to a request. */
export interface Explanation {
  readonly policy: string
  readonly applies: boolean
  /** Why it does not: `path`, `method`, `host`, `header x-name`, or the fault of a resolver. */
  readonly why: string | undefined
  readonly tier: string | undefined
  /** The override that decides: its index in the document, from 0, or `'overrides'` for one beside it, in PostgreSQL `'sluice_overrides'`. */
  readonly override: number | string | undefined
  readonly limits: readonly {
    readonly name: string
    readonly algorithm: string
    readonly limit: unknown
    readonly window: unknown
    /** Present where it counts another unit than requests. */
    readonly unit?: QuotaUnit
  }[]
}

/** @throws SluiceError `INVALID_POLICY` for what no request has: its explanation would be one of another request */
// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
export function contextFor(given: RequestToExplain): HttpContext<any> {
  const { path: target } = given
  const [method, headers] = [propertyOf(given, 'method') ?? 'GET', propertyOf(given, 'headers') ?? {}]
  const ip = propertyOf(given, 'ip')
  if (!/^[A-Z-]{1,20}$/.test(method)) wrong('method', 'a method in upper case, such as GET', method)
  if (ip !== undefined && isIP(ip) === 0) wrong('ip', 'an address such as 192.0.2.7', ip)
  for (const name of Object.keys(headers)) {
    if (!/^[\w.!#$&'*+^`|~-]{1,200}$/.test(name)) wrong('headers', 'names of headers', name)
  }
  const fields = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return {
    request: propertyOf(given, 'request'),
    method,
    path: pathOf(target),
    target,
    ip,
    route: undefined,
    response: UNSEEN_RESPONSE,
    header: (name) => fields.get(name),
    signedCookie: () => undefined,
    getResponseHeader: () => undefined,
  }
}

function wrong(field: string, expected: string, got: unknown): never {
  throw new SluiceError('INVALID_POLICY', `explain: ${field}: expected ${expected}, got ${shown(got)}`)
}
