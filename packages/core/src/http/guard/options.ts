import { UNAVAILABLE_OPTIONS, type UnavailableOptions } from '../../limiter/fallback.js'
import { type BasicPolicyOptions, POLICY_OPTIONS } from '../../policy/policy.js'
import type { CostOption } from '../../policy/request-cost.js'
import type { HttpContext } from '../../request/context.js'
import type { Store } from '../../store/store.js'
import type { Duration } from '../../util/duration.js'
import type { FORMS, Use } from '../../util/option-hints.js'
import type { LimiterWarningsOption } from '../../util/warnings.js'
import type { Verdict } from '../../verdict/verdict.js'
import type { HeadersOption } from '../headers/table.js'
import type { AnonymousOption } from '../identity/anonymous.js'
import type { Responder } from '../responders/responder.js'
import type { EnforcementOptions } from './enforcement.js'
import type { InvalidOption } from './invalid.js'

/** The options of `rateLimit` without those of features. `Request` is the framework's object that its handlers get. */
export interface BasicRateLimitOptions<Request>
  extends BasicPolicyOptions<Request>,
    EnforcementOptions,
    UnavailableOptions {
  /** The store of the state. @default a memory store of this limiter's own */
  readonly store?: Store | Use<typeof FORMS.store, Store>
  /**
   * Units of a request: whole, 0 or more.
   *
   * A number is of `requests`; 0 takes nothing but shows the quota. An object has numbers or functions by unit, such as
   * `{ tokens: (req) => estimate(req), cents: 3 }`. A function returns either, and may be async.
   *
   * A unit that is not named is 1 for `requests` and `concurrent-requests`. Others are 0 then, and need room for 1.
   * Required where a limit has a `unit` of your own.
   * @default 1
   */
  readonly cost?: CostOption<Request>
  /** Requests that are not limited: no charge, no headers. May be async. @default none */
  readonly skip?: (request: Request, context: HttpContext<Request>) => boolean | Promise<boolean>
  /** Responds to a refused request, unless the limit that refuses has its own `respond`. @default reject() */
  readonly respond?: Responder<Request>
  /**
   * The treatment of requests whose key is undefined, null or empty.
   *
   * They are invalid (see `onInvalid`), counted by address apart from all keys, or not limited at all. Other wrong keys
   * are always invalid.
   * @default 'error'
   */
  readonly anonymous?: AnonymousOption
  /**
   * Responds to requests that cannot be counted because of something missing or invalid, such as a missing key.
   *
   * `'reject'`: this limiter, with 400 (401 for `byUser` with a `challenge`). `'pass'`: the framework's error handler,
   * which gets an error of that status. Nothing is charged, and `onVerdict` is not called. With `enforce: { mode:
   * 'report' }` they proceed without being limited. In any case the process warns, once for each fault and minute
   * (`SluiceWarning`, code `SLUICE_INVALID_REQUEST`).
   * @default 'reject'
   */
  readonly onInvalid?: InvalidOption
  /** The form of the quota headers: one, several with different fields, or `false` for none. @default 'draft-11' */
  readonly headers?: HeadersOption
  /**
   * Maximum of the fields `Retry-After` and `Retry-After-Ms`. The refusal itself lasts as long as before.
   *
   * Some clients retry at once where the field exceeds 24.8 days: `'24d'` is below that.
   * @default none
   */
  readonly maxRetryAfter?: Duration
  /**
   * Called once for every request with a verdict, before anything is sent. With `policies`, once for each group of them.
   *
   * It gets the verdict that decided the response. It is not called for skipped requests, nor for those refused with
   * 413 before the decision. Errors that it throws reach the framework's error handler; charges stay. A returned
   * promise is not awaited; its rejection becomes a warning (`SluiceWarning`, code `SLUICE_LISTENER_FAILED`).
   * @default none
   */
  readonly onVerdict?: (request: Request, verdict: Verdict, context: HttpContext<Request>) => unknown
  /**
   * The property that holds the verdict: of Express's and Fastify's request, of Koa's `ctx.state`.
   *
   * The last of several limiters with one name determines it. A letter, `_` or `$`, then those and digits, up to 64; no
   * property of Node's requests, such as `headers`. Declare another name in your types.
   * @default 'rateLimit'
   */
  readonly requestProperty?: string
  /** Silences warnings of this limiter, one by one: `{ SLUICE_ONE_CLIENT: false }`. @default all are emitted */
  readonly warnings?: LimiterWarningsOption
}

export const BASIC_RATE_LIMIT_OPTIONS = [
  ...POLICY_OPTIONS,
  ...UNAVAILABLE_OPTIONS,
  'store',
  'cost',
  'skip',
  'respond',
  'headers',
  'maxRetryAfter',
  'anonymous',
  'onInvalid',
  'onVerdict',
  'requestProperty',
  'warnings',
  'enforce',
] as const
