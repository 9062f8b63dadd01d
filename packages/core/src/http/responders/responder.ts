import type { Readable } from 'node:stream'
import type { HttpContext } from '../../request/context.js'
import type { LimitReport, Verdict } from '../../verdict/verdict.js'
import type { HeaderField } from '../headers/writer.js'
import type { LinedUp, TurnOptions } from './line-up.js'

declare module '../../policy/limits/limit.js' {
  interface CommonOptions<Subject> {
    /** What happens to an HTTP request that this limit refuses for longest of all. @default the limiter's `respond` */
    readonly respond?: Responder<Subject>
  }
}

/** A request that a limit or a block refused, handed to a responder. */
export interface Refused<Request> {
  readonly context: HttpContext<Request>
  readonly verdict: Verdict
  /**
   * Waits in line for the request's key, in this process, until the limiter admits and charges it or
   * the wait proves too long; gives the place up when the client leaves. For responders that are
   * marked `linesUp`. Rejects with what the store does.
   */
  lineUp(options: TurnOptions): Promise<LinedUp>
}

/** A response instead of the handler's. */
export interface Reply {
  readonly status: number
  /** Beside the quota headers; replace fields of the same name. `Content-Length` is added where it is missing. */
  readonly headers: readonly HeaderField[]
  /** A stream is sent in chunks, without a length. */
  readonly body: string | Uint8Array | Readable
  /** Whether quota headers and `Retry-After` go along. */
  readonly tellsQuota: boolean
  /** To be sent the way the framework's handlers send, with all that the framework adds then. @default false */
  readonly likeHandler?: boolean
}

/** What becomes of a refused request: a reply, `proceed` to the handler, or `gone` as the client left. */
export type Ending = Reply | 'proceed' | 'gone'

/** An ending, and the verdict that stands by then: of a request that was admitted in the end, or marked. */
export interface Later {
  readonly verdict: Verdict
  readonly ending: Ending
}

export type Action = Ending | Later

/** Decides what becomes of a refused request. Without a promise where none is needed. */
export interface Responder<Request = unknown> extends ResponderTraits<Request> {
  (refused: Refused<Request>): Action | Promise<Action>
}

/**
 * What a responder may ask of its limiter beyond being called for refusals. A function of your own that
 * calls on such a responder hands its traits on: `Object.assign((refused) => …, { linesUp: true })`.
 */
export interface ResponderTraits<Request = unknown> {
  /** Its requests wait in line: one that comes later joins them, where it could have overtaken them. */
  readonly linesUp?: boolean
  /** No response that the limiter lets through may tell of a quota, since its own replies do not. */
  readonly hidesQuota?: boolean
  /**
   * What answers instead where a request is refused since nothing could decide (`onUnavailable: 'deny'`): no
   * client is to be deceived, held or let through for that. @default reject()
   */
  readonly whenUnavailable?: Responder<Request>
  /** Told of each request that is admitted, before its handler runs. */
  readonly onAdmitted?: (context: HttpContext<Request>) => void
  /** Milliseconds by which to put off a request that one limit has just admitted. */
  readonly slowness?: (report: LimitReport) => number
}

/** A responder with its own traits, and those of the responder it falls back on. */
export function withTraits<Request>(
  responder: (refused: Refused<Request>) => Action | Promise<Action>,
  fallback: Responder<Request>,
  traits: ResponderTraits<Request> = {},
): Responder<Request> {
  const { linesUp, hidesQuota, whenUnavailable, onAdmitted, slowness } = fallback
  return Object.assign(responder, { linesUp, hidesQuota, whenUnavailable, onAdmitted, slowness, ...traits })
}

export function isLater(action: Action): action is Later {
  return typeof action === 'object' && action !== null && 'ending' in action
}
