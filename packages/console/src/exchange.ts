import type { IncomingMessage, ServerResponse } from 'node:http'

/** A request as an adapter hands it over. */
export interface Exchange<Request = unknown> {
  /** What the framework hands to its handlers: `authorize` gets it. */
  readonly request: Request
  readonly raw: IncomingMessage
  readonly response: ServerResponse
  /** The path below that of the console, without the query. */
  readonly path: string
  /** The address of the client, by the framework's own trusted-proxy rules. */
  readonly ip: string | undefined
  /** The body, where a body parser before the console has read it. */
  readonly parsed: unknown
}

/** A response, before it is written. */
export interface Reply {
  readonly status: number
  readonly type: string
  readonly body: string | Uint8Array
  readonly headers: Readonly<Record<string, string>>
}
