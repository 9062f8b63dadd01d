import type { Readable } from 'node:stream'
import type { HttpContext } from '../../request/context.js'
import type { LimitReport } from '../../verdict/limit-report.js'
import type { Verdict } from '../../verdict/verdict.js'
import type { HeaderField } from '../headers/writer.js'

declare module '../../policy/limits/limit.js' {
  interface CommonOptions<Subject> {
    /** What happens to an HTTP request that this limit refuses for longest of all. @default the limiter's `respond` */
    readonly respond?: Responder<Subject>
  }
}

declare module '../../lists/options.js' {
  interface DenyOptions<Subject> {
    /** What happens to a request that these lists deny. @default the limiter's `respond` */
    readonly respond?: Responder<Subject>
  }
}

declare module '../../policy/ban.js' {
  interface BanOptions<Subject> {
    /** What happens to banned HTTP requests; one that queues is an error. See `escalate`. @default the limiter's `respond` */
    readonly respond?: Responder<Subject>
  }
}

/** A request that a limit, a list or a block refused, as a responder gets it. */
export interface Refused<Request> {
  readonly context: HttpContext<Request>
  readonly verdict: Verdict
  /**
   * Queues the request by its key, in this process, until the limiter admits and charges it or the
   * wait proves too long; leaves the queue when the client leaves. For responders that are
   * marked `queues`. Rejects with what the store does.
   */
  waitTurn(options: TurnOptions): Promise<TurnResult>
}

export interface TurnOptions {
  /** Longest wait, in ms; may be infinite. */
  readonly maxWaitMs: number
  /** Goes before requests that came up to this many ms earlier with a head start of 0. @default 0 */
  readonly headStartMs?: number
  /** Requests of one class are served in turn by client; those without one count as one client. */
  readonly client?: string | undefined
  /** Most requests that wait in the queue, this one included. @default no bound */
  readonly size?: number
}

/** `gone` when the client has left. Else a verdict: admitted and charged, or refused for longer than the wait may take. */
export type TurnResult = Verdict | 'gone'

/** A response instead of the handler's. */
export interface Reply {
  readonly status: number
  /** Beside the quota headers; replace fields of the same name. `Content-Length` is added where it is missing. */
  readonly headers: readonly HeaderField[]
  /** A stream is sent in chunks, without a length. */
  readonly body: string | Uint8Array | Readable
  /** Whether quota headers and `Retry-After` go along. */
  readonly showsQuota: boolean
  /** Whether to send it as the framework's handlers send, with everything that the framework adds. @default false */
  readonly likeHandler?: boolean
}

/** A function that a framework runs for requests; the adapter knows what it takes. */
export type NativeHandler = (...args: never[]) => unknown

/** The application answers, after quota headers, `Retry-After` and `Cache-Control: no-store` have been set. */
export interface Handover {
  /** A handler of its own, or the framework's error handler, which gets a `RateLimitError`. */
  readonly to: NativeHandler | 'error-handler'
  /** The status of the error; that of the response unless the handler sets another. */
  readonly status: 403 | 429 | 503
}

/** What becomes of a refused request: a reply, the application's own, `proceed` to the handler, or `gone` as the client left. */
export type Ending = Reply | Handover | 'proceed' | 'gone'

/** An ending with another verdict: of a request that was admitted after all, or a marked copy. */
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
 * What a responder needs of its limiter beyond being called for refusals. A function of your own that
 * calls such a responder passes its traits on: `Object.assign((refused) => …, { queues: true })`.
 */
export interface ResponderTraits<Request = unknown> {
  /** Its requests wait in a queue: a later request that could overtake them queues behind them. */
  readonly queues?: boolean
  /** Responses that the limiter lets through carry no quota headers, since its own replies carry none. */
  readonly hidesQuota?: boolean
  /**
   * What responds instead when a request is refused because the store is away (`unavailable: { decide: 'deny' }`): an outage
   * is no reason to deceive, hold or admit a client. @default reject()
   */
  readonly whenUnavailable?: Responder<Request>
  /**
   * @internal Whether a response goes on in whose middle a quota of its bytes is used up, after so many of them; slows it down
   * where that is what the responder does. @default the limiter's `onExhausted`
   */
  readonly whenExhausted?: (context: HttpContext<Request>, sent: number) => boolean
  /** Called for each request that is admitted, before its handler runs. */
  readonly onAdmitted?: (context: HttpContext<Request>) => void
  /** Whose turn a request waits for: turns are exchanged between clients. @default by IP where many clients share a limit */
  readonly clientOf?: (context: HttpContext<Request>, verdict: Verdict) => Promise<string | undefined>
  /** Milliseconds by which to delay a request that one limit has just admitted. */
  readonly slowness?: (report: LimitReport) => number
}

/** A responder with its own traits, and those of the responder that it falls back to. */
export function withTraits<Request>(
  responder: (refused: Refused<Request>) => Action | Promise<Action>,
  fallback: Responder<Request>,
  traits: ResponderTraits<Request> = {},
): Responder<Request> {
  const { queues, hidesQuota, whenUnavailable, whenExhausted, onAdmitted, slowness, clientOf } = fallback
  const own = { queues, hidesQuota, whenUnavailable, whenExhausted, onAdmitted, slowness, clientOf }
  return Object.assign(responder, { ...own, ...traits })
}

export function isHandover(ending: Reply | Handover): ending is Handover {
  return 'to' in ending
}

export function isLater(action: Action): action is Later {
  return typeof action === 'object' && action !== null && 'ending' in action
}
