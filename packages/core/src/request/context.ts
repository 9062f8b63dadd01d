import type { ServerResponse } from 'node:http'
import { propertyOf } from '../util/property-of.js'

/** A request of any framework, in the form that the core reads. Adapters make one per request. */
export interface HttpContext<Request = unknown> {
  /** The framework's object that its handlers get; the first argument of every user function. */
  readonly request: Request
  /** The raw response: shows when the response is complete or the client has left. */
  readonly response: RawResponse
  /** Whether other calls share the response, as the fields of a GraphQL query do. @default false */
  readonly sharesResponse?: boolean
  /** Whether the caller changes the charge by its id: nothing is released or refunded when the response is over. @default false */
  readonly keepsCharges?: boolean
  /** The client's address by the framework's own trusted-proxy rules. */
  readonly ip: string | undefined
  /** The proxies that the framework trusts, whose `X-Forwarded-For` determines `ip`; undefined if unknown. */
  readonly proxyTrust?: ProxyTrust | undefined
  /** The instruction to trust a proxy, for warnings. @default "name it in the framework's trust settings" */
  readonly proxyRemedy?: string | undefined
  readonly method: string
  /** The path as requested, without the query. */
  readonly path: string
  /** The request target as sent: the path with its query. */
  readonly target: string
  /** The pattern of the route that matched, where the framework knows it. The client chooses nothing of it. */
  readonly route: string | undefined
  /** Set where `route` lacks the path at which its router is mounted: an object that identifies this route. */
  readonly mountedRoute?: object | undefined
  /** The path at which that router is mounted, as the client wrote it. */
  readonly mountPath?: string
  /** A request header by its lower-case name; several joined by the framework's rules. */
  header(name: string): string | undefined
  /**
   * The value of a signed cookie, once the framework has verified it; undefined if it is missing or forged.
   *
   * @throws SluiceError `INVALID_POLICY` where the application has no support for signed cookies
   */
  signedCookie(name: string): string | undefined
  /** A response header that is already set. */
  getResponseHeader(name: string): string | undefined
  /**
   * Makes the framework's own methods of the response do nothing. Called when the limiter has sent the response while
   * a handler may still run. The methods of the raw response are disabled already.
   */
  disableResponse?(): void
}

/** `everyone`: a setting that trusts every proxy, `remedy`: the setting to use instead, `app`: the app that has it. */
export type ProxyTrust = 'none' | 'named' | { readonly everyone: string; readonly remedy: string; readonly app: object }

/** A context of a request with Node's fields, as every framework has them. Adapters add the rest. */
export abstract class RequestContext<Request extends NodeRequest> implements HttpContext<Request> {
  readonly request: Request
  abstract readonly response: RawResponse & Pick<ServerResponse, 'getHeader'>
  abstract readonly ip: string | undefined
  abstract readonly route: string | undefined

  constructor(request: Request) {
    this.request = request
  }

  /** What only some adapters know: here, so that `Object.prototype` gives nobody another. */
  get sharesResponse(): boolean {
    return false
  }

  get keepsCharges(): boolean {
    return false
  }

  get proxyTrust(): ProxyTrust | undefined {
    return undefined
  }

  get proxyRemedy(): string | undefined {
    return undefined
  }

  get mountedRoute(): object | undefined {
    return undefined
  }

  get mountPath(): string {
    return ''
  }

  disableResponse(): void {}

  get method(): string {
    return this.request.method ?? 'GET'
  }

  get path(): string {
    return pathOf(this.target)
  }

  get target(): string {
    return this.request.originalUrl ?? this.request.url ?? '/'
  }

  header(name: string): string | undefined {
    const { headers } = this.request
    // Node's headers are a plain object, which has a `constructor` that no client sent.
    return Object.hasOwn(headers, name) ? headerText(headers[name]) : undefined
  }

  abstract signedCookie(name: string): string | undefined

  getResponseHeader(name: string): string | undefined {
    return headerText(this.response.getHeader(name))
  }
}

interface NodeRequest {
  readonly method?: string | undefined
  /** The request target where the framework changes `url`. */
  readonly originalUrl?: string
  readonly url?: string | undefined
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

/** The members of Node's `ServerResponse` that the core needs, over HTTP/1 and HTTP/2. */
export interface RawResponse {
  readonly destroyed?: boolean
  readonly writableFinished?: boolean
  readonly headersSent?: boolean
  readonly statusCode?: number
  /** The raw request, whose body is read. */
  readonly req?: unknown
  /** @internal The `Timing` of a simulated request. @default that of the process */
  readonly timing?: object
  /** The stream of HTTP/2. */
  readonly stream?: { readonly closed?: boolean; readonly destroyed?: boolean }
  on(event: 'finish' | 'close', listener: () => void): unknown
  removeListener(event: 'finish' | 'close', listener: () => void): unknown
}

/** The end of a response that others send. It has every field, so that `Object.prototype` gives it none. */
export const UNSEEN_RESPONSE: RawResponse = {
  destroyed: false,
  writableFinished: false,
  headersSent: false,
  statusCode: undefined,
  req: undefined,
  timing: undefined,
  stream: undefined,
  on() {},
  removeListener() {},
}

/** Whether nothing can be sent: the response is complete, or the client has left. */
export function isOver(response: RawResponse): boolean {
  const stream = propertyOf(response, 'stream')
  if (response.destroyed === true || stream?.destroyed === true || stream?.closed === true) return true
  // Over HTTP/2, the empty body of a response to HEAD is finished before the headers are sent.
  return response.writableFinished === true && response.headersSent !== false
}

/** Whether the client has left, possibly before its response's turn on the connection. */
export function isGone(response: RawResponse): boolean {
  if (isOver(response)) return true
  try {
    return (response.req as { socket?: { destroyed?: boolean } } | undefined)?.socket?.destroyed === true
  } catch {
    // HTTP/2 does not permit access to a socket that is gone.
    return true
  }
}

/** A header of Node's parsed `headers`, as one text. */
export function headerText(value: string | number | readonly string[] | undefined): string | undefined {
  return value === undefined || typeof value === 'string'
    ? value
    : Array.isArray(value)
      ? value.join(', ')
      : String(value)
}

/**
 * `http://host`, as proxies may send it. Frameworks derive different paths from other schemes and characters, and from a query
 * with a slash.
 */
const ORIGIN = /^https?:\/\/(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d*)?(?=\/|$|[?#][^/]*$)/

/** What makes Express parse a target as a URL, anywhere in it. */
const PARSED_AS_URL = /^[^/]|[#\s]/
/** The characters of a path that are escaped then. */
const ESCAPED = /["'<>^`{|}]/

/**
 * The path of a request target, without the query. A target that is neither a path nor `http://host/path` stays as sent.
 *
 * A path in which Express escapes characters is marked as unreadable: a router that is mounted on a parameter removes as many
 * characters as the escaped parameter has, more than were sent. `http://h/a|/x/login` is `/login` there.
 */
export function pathOf(target: string): string {
  const localPath = target.startsWith('/') ? target : target.replace(ORIGIN, '')
  const end = localPath.search(/[?#]/)
  const path = (end < 0 ? localPath : localPath.slice(0, end)) || '/'
  return ESCAPED.test(path) && PARSED_AS_URL.test(target) ? unreadablePath(path) : path
}

/** Marks a path whose meaning in the framework is unknown: what reads paths takes it for an invalid request. */
export function unreadablePath(path: string): string {
  return `#${path}`
}
