/** A request as the core sees it, whatever the framework. Adapters make one per request. */
export interface HttpContext<Request = unknown> {
  /** What the framework hands to its handlers; the first argument of every user function. */
  readonly request: Request
  /** The client's address by the framework's own trusted-proxy rules. */
  readonly ip: string | undefined
  readonly method: string
  /** The path as requested, without the query. */
  readonly path: string
  /** The pattern of the route that matched, where the framework knows it. */
  readonly route: string | undefined
  /** A request header by its lower-case name; several joined by the framework's rules. */
  header(name: string): string | undefined
  /** A response header that is already set. */
  getResponseHeader(name: string): string | undefined
}
