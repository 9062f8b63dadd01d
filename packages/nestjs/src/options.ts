import {
  type BodyOptions,
  type CountOptions,
  type Limit,
  type Limiter,
  type RateLimitOptions,
  SluiceError,
} from '@sluice/core'

// Of the main entry alone: many projects on Nest 11 compile with a resolution of modules that finds no other.

/**
 * The options of a limiter. Their functions get the request of Express or Fastify, for GraphQL as well. For a message over
 * WebSockets they get the client's socket.
 */
export type NestRateLimitOptions = RateLimitOptions<AnyRequest>

// biome-ignore lint/suspicious/noExplicitAny: a request of Express or of Fastify, or a socket
export type AnyRequest = any

export type NestLimiter = Limiter<AnyRequest>

/** The options of `@RateLimit`: at least one. Those of the module apply where it names none. */
export type RouteRateLimitOptions = AtLeastOne<OwnOptions>

export interface OwnOptions extends Omit<NestRateLimitOptions, 'count' | 'body' | 'limits'> {
  /**
   * Several limits, decided together, all or none; instead of `limit` and `window`.
   *
   * An object changes limits of the module by their names: `{ burst: false, daily: perDay(50) }`. The others count on, over all
   * routes. Beside it only `name`.
   * @default none
   */
  readonly limits?: readonly Limit<AnyRequest>[] | LimitsByName
  /** As of the module; a field that it does not name is the module's. */
  readonly count?: Partial<CountOptions>
  /** As of the module; a field that it does not name is the module's. */
  readonly body?: Partial<BodyOptions>
}

/** Limits of the module by their names: `false` skips one, a limit replaces it. */
export type LimitsByName = Readonly<Record<string, Limit<AnyRequest> | false>>

/** Options, of which one is named. With none required the compiler would accept an object of misspelt ones from a variable. */
type AtLeastOne<Options> = { [Option in keyof Options]-?: Options & Required<Pick<Options, Option>> }[keyof Options]

/** The part of the options that is about clients of WebSockets. */
export interface SocketOptions {
  /**
   * Returns the address of a client of a WebSocket.
   *
   * Such as the one that a trusted proxy names in a header of the handshake. Gets the socket, or for an operation of
   * GraphQL the request of the handshake.
   * @default the address that has connected: the client, or its proxy
   */
  readonly socketAddress?: (client: AnyRequest) => string | undefined
}

/** Options of the module's limiter, which `@RateLimit` inherits. Without a limit, the module has no limiter of its own. */
export interface SluiceModuleOptions extends NestRateLimitOptions, SocketOptions {
  /** Whether requests for paths without a route count, where the guard is global. @default true */
  readonly unknownPaths?: boolean
}

/** @throws SluiceError `INVALID_POLICY` for a value that is no object of options */
export function checkOptions(where: string, example: string, options: unknown): void {
  if (Object.prototype.toString.call(options) === '[object Object]') return
  throw new SluiceError('INVALID_POLICY', `${where}: expected an object of options, as in ${example}`)
}
