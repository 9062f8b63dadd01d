import type { Readable } from 'node:stream'
import type { HttpContext } from '../../request/context.js'
import { isPropertyOf, propertyOf } from '../../util/property-of.js'
import type { LimitReport } from '../../verdict/limit-report.js'
import type { Verdict } from '../../verdict/verdict.js'
import type { HeaderField } from '../headers/writer.js'

declare module '../../policy/limits/limit.js' {
  interface CommonOptions<Subject> {
    /** Responds to an HTTP request for which this limit's refusal lasts longest. @default the limiter's `respond` */
    readonly respond?: Responder<Subject>
  }
}

declare module '../../features/lists/options.js' {
  interface DenyOptions<Subject> {
    /** Responds to a request that these lists deny. @default the limiter's `respond` */
    readonly respond?: Responder<Subject>
  }
}

declare module '../../features/bans/ban-terms.js' {
  interface BanOptions<Subject> {
    /** Responds to banned HTTP requests; a responder that queues is an error. See `escalate`. @default the limiter's `respond` */
    readonly respond?: Responder<Subject>
  }
}

/** A request that a limit, a list or a block refused, as a responder gets it. */
export interface Refused<Request> {
  readonly context: HttpContext<Request>
  readonly verdict: Verdict
  /**
   * Queues the request by its key, in this process, until the limiter admits and charges it or the
   * wait is too long. It leaves the queue when the client leaves. For responders that are
   * marked `queues`. Rejects with the error of the store.
   */
  waitTurn(options: TurnOptions): Promise<TurnResult>
}

export interface TurnOptions {
  /** Maximum wait, in ms; may be infinite. */
  readonly maxWaitMs: number
  /** The request precedes those that came up to this many ms earlier with a head start of 0. @default 0 */
  readonly headStartMs?: number
  /** Requests of one class are served in turn by client; those without one count as one client. */
  readonly client?: string | undefined
  /** Maximum of requests that wait in the queue, this one included. @default no bound */
  readonly size?: number
}

/** `gone` when the client has left. Else a verdict: admitted and charged, or refused for longer than the maximum wait. */
export type TurnResult = Verdict | 'gone'

/** A response instead of the handler's. */
export interface Reply {
  readonly status: number
  /**
   * Fields beside the quota headers; they replace fields of the same name. `Content-Length` is added where it is missing.
   * `Cache-Control: no-store` is, too, and in place of a `Cache-Control` that lets shared caches store the reply.
   */
  readonly headers: readonly HeaderField[]
  /** A stream is sent in chunks, without a length. */
  readonly body: string | Uint8Array | Readable
  /** Whether to send quota headers and `Retry-After` too. */
  readonly showsQuota: boolean
  /**
   * Whether to send it as the framework's handlers do, with everything that the framework adds, and a `Cache-Control` that
   * the response has already, if it forbids shared caches to store it.
   * @default false
   */
  readonly likeHandler?: boolean
}

/** A function that a framework runs for requests; the adapter knows its arguments. */
export type NativeHandler = (...args: never[]) => unknown

/** The application responds, after quota headers, `Retry-After` and `Cache-Control: no-store` have been set. */
export interface Handover {
  /** A handler of the application, or the framework's error handler, which gets a `RateLimitError`. */
  readonly to: NativeHandler | 'error-handler'
  /** The status of the error, and of the response unless the handler sets another. */
  readonly status: 403 | 429 | 503
}

/** The end of a refused request: a reply, a response of the application, `proceed` to the handler, or `gone` as the client left. */
export type Ending = Reply | Handover | 'proceed' | 'gone'

/** An ending with another verdict: of a request that was admitted after its wait, or a marked copy. */
export interface Later {
  readonly verdict: Verdict
  readonly ending: Ending
}

export type Action = Ending | Later

/** Decides the ending of a refused request. Returns a promise only where it waits. */
export interface Responder<Request = unknown> extends ResponderTraits<Request> {
  (refused: Refused<Request>): Action | Promise<Action>
}

/**
 * Properties of a responder that its limiter reads. Your own function that calls such a responder passes them on:
 * `Object.assign((refused) => …, { queues: true })`.
 */
export interface ResponderTraits<Request = unknown> {
  /** Its requests wait in a queue: a later request that could overtake them joins the queue behind them. */
  readonly queues?: boolean
  /** Responses of admitted requests have no quota headers, since its own replies have none. */
  readonly hidesQuota?: boolean
  /** Its replies look like successes of the handler: it is none for calls whose refusal has no reply of its own. */
  readonly deceives?: boolean
  /** It passes refused requests to handlers that read the verdict: it is none for calls that have no request of their own. */
  readonly degrades?: boolean
  /**
   * Responds instead when a request is refused because the store is away (`unavailable: { decide: 'deny' }`). An outage
   * is no reason to deceive, hold or admit a client. @default reject()
   */
  readonly whenUnavailable?: Responder<Request>
  /**
   * @internal Whether a response that uses up a quota of its bytes continues, after `sent` bytes. Slows the response down where
   * the responder does so. @default the limiter's `onExhausted`
   */
  readonly whenExhausted?: (context: HttpContext<Request>, sent: number) => boolean
  /** The client of a waiting request: clients take turns. @default by IP where many clients share a limit */
  readonly clientOf?: (context: HttpContext<Request>, verdict: Verdict) => Promise<string | undefined>
  /** The delay of a request that one limit has just admitted, in ms. */
  readonly slowness?: (report: LimitReport) => number
}

/** The traits of a responder, which users may have written. */
export function traitsOf<Request>(responder: Responder<Request>): ResponderTraits<Request> {
  return {
    queues: propertyOf(responder, 'queues'),
    hidesQuota: propertyOf(responder, 'hidesQuota'),
    deceives: propertyOf(responder, 'deceives'),
    degrades: propertyOf(responder, 'degrades'),
    whenUnavailable: propertyOf(responder, 'whenUnavailable'),
    whenExhausted: propertyOf(responder, 'whenExhausted'),
    slowness: propertyOf(responder, 'slowness'),
    clientOf: propertyOf(responder, 'clientOf'),
  }
}

/** A responder with its own traits, and those of its fallback. */
export function withTraits<Request>(
  responder: (refused: Refused<Request>) => Action | Promise<Action>,
  fallback: Responder<Request>,
  traits: ResponderTraits<Request> = {},
): Responder<Request> {
  return Object.assign(responder, { ...traitsOf(fallback), ...traits })
}

export function isHandover(ending: Reply | Handover): ending is Handover {
  return isPropertyOf(ending, 'to')
}

export function isLater(action: Action): action is Later {
  return typeof action === 'object' && action !== null && isPropertyOf(action, 'ending')
}
