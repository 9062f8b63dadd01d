import type { Duration, Limit, SharedTurnsOptions, Store, Units } from '@sluice/core'
import type { Quota } from './quota/quota-types.js'

/** A request that is about to be sent. */
export interface OutboundRequest {
  readonly url: URL
  /** In upper case. */
  readonly method: string
  readonly headers: Headers
  /** Its body, if it is text or bytes, and `limits` count tokens or `cost` is a function. */
  readonly body?: string | undefined
}

/** Progress of a request that waits. */
export interface WaitProgress {
  /** The origin of its URL. Neither its path nor its key, which may be secret. */
  readonly origin: string
  /** Milliseconds that it has waited. */
  readonly waitedMs: number
  /** Requests for the same key that wait in this process, this one included. */
  readonly waiting: number
  /** Milliseconds until the first of them may be sent, as far as this is known. */
  readonly retryAfterMs: number | undefined
  /** Why they wait: `the service asks for a pause: …`, or the name of a limit. */
  readonly reason: string
}

/**
 * What a response says to its request.
 *
 * - `refused`: by a rate limit, so all requests of its key wait.
 * - `final`: refused, and no wait helps, as with `insufficient_quota`. Nothing waits, and nothing is sent again.
 * - `accepted`: not refused.
 */
export type ResponseKind = 'refused' | 'final' | 'accepted'

export interface RetryOptions {
  /** How often a refused request is sent again: 1 to 100. */
  readonly attempts: number
  /**
   * The methods that are sent again, in upper or lower case.
   *
   * A request of any method with the header `Idempotency-Key` is sent again, too. Bodies that are streams are not.
   * @default ['GET', 'HEAD', 'OPTIONS']
   */
  readonly methods?: readonly string[]
}

/** How requests wait: the options of `limitedFetch`, and of `limited` for undici. */
export interface OutboundOptions {
  /** The name of its limits in a store, in errors and in metrics. @default 'fetch' */
  readonly name?: string
  /** Where requests are counted. Processes on one Redis wait together. @default the memory of this process */
  readonly store?: Store
  /** What you know of the limits of the service. Requests over them wait. @default none: only what responses tell */
  readonly limits?: readonly Limit<string>[]
  /**
   * What a request costs before it is sent: requests, or units of `limits` by name, such as `{ tokens: 800 }`.
   *
   * Of limits of the units `tokens`, `input-tokens` and `output-tokens` that it does not name: a quarter of the bytes of a JSON body,
   * and the `max_tokens` in it.
   * @default 1 request
   */
  readonly cost?: number | Units | ((request: OutboundRequest) => number | Units)
  /**
   * What a response says it has cost, in units of `limits`. It replaces `cost`.
   *
   * Called with the JSON of the response, or with that of each event of a stream. The last result counts; undefined: none.
   * @default tokens, by the `usage` of OpenAI and Anthropic
   */
  readonly usage?: (document: unknown) => Units | undefined
  /**
   * What is counted together: an API key, a tenant, or a route.
   *
   * Stores and metrics hold it as it is: hash secrets.
   * @default the origin of the first URL, also where it redirects to another
   */
  readonly key?: string | ((request: OutboundRequest) => string)
  /** The longest wait for a turn, in each attempt. `Infinity`: no bound. @default '2m' */
  readonly maxWait?: Duration
  /** Requests of a higher priority go first. A function gets the request. @default 0 */
  readonly priority?: number | ((request: OutboundRequest) => number)
  /** The client or task, for fair turns. @default first come, first served */
  readonly fairBy?: (request: OutboundRequest) => string
  /** Whether priorities hold across the processes of a Redis store. @default true */
  readonly sharedTurns?: boolean | SharedTurnsOptions
  /**
   * How units that a service says are left are spent.
   *
   * `'burst'`: at once, but the last tenth evenly. `'even'`: evenly until they are back.
   * @default 'burst'
   */
  readonly pace?: 'even' | 'burst'
  /**
   * Whether an origin is asked less while it fails: without a response, or with a status of 500 or more. Requests that are kept
   * back reject with `CIRCUIT_OPEN`.
   *
   * A number: the requests that are sent for each one that succeeds, 1 to 100. `true`: 2.
   * @default false
   */
  readonly circuit?: boolean | number
  /** Called after 50 ms of a wait, and each second of it from then on. Its errors are warnings (`SLUICE_LISTENER_FAILED`). */
  readonly onWait?: (progress: WaitProgress) => void
}

/** The options of `limitedFetch`. */
export interface LimitedFetchOptions extends OutboundOptions {
  /**
   * Reads responses that status and headers do not tell apart. For undefined, these do. Clone the response to read its body.
   *
   * If it throws or rejects, these do, too, with a warning (`SLUICE_LISTENER_FAILED`).
   */
  readonly kindOf?: (response: Response, quota: Quota) => ResponseKind | undefined | Promise<ResponseKind | undefined>
  /** Ends all waits and requests, as that of each request does. */
  readonly signal?: AbortSignal
  /** Sends refused requests again after the wait. Leave it out where an SDK does so. @default none is sent again */
  readonly retry?: RetryOptions
}
