import { kindOf } from '../../policy/keyed.js'
import type { KeyFunction } from '../../policy/limits/limit.js'
import type { PolicyChoice } from '../../policy/policy.js'
import { type HttpContext, isGone } from '../../request/context.js'
import { SluiceError } from '../../util/errors.js'
import { type Fault, RequestFault } from '../../util/request-fault.js'
import { oneOf } from '../../util/validate.js'
import type { LimiterWarning, Warnings } from '../../util/warnings.js'
import { releasePermits } from '../charging/permits.js'
import type { HeaderField } from '../headers/writer.js'
import { problemReply } from '../responders/problem.js'
import { ENDED, type Outcome, replyOutcome, SKIPPED } from './outcome.js'

/** What answers requests that lack a key, or get one or their cost wrong: the limiter, or the framework's error handler. */
export type InvalidOption = 'reject' | 'pass'

const WARN_AGAIN_MS = 60_000
const TITLES = { 400: 'Bad Request', 401: 'Unauthorized' } as const

/** For the framework's error handler: says nothing to clients that they may not know. What was wrong is its cause. */
class InvalidRequest extends SluiceError {
  readonly status: number
  readonly statusCode: number
  /** As Express and Koa know it: the message may be sent. */
  readonly expose = true
  readonly headers: Readonly<Record<string, string>>

  constructor(cause: RequestFault, status: 400 | 401, headers: readonly HeaderField[]) {
    super(cause.code, TITLES[status], { cause })
    this.status = status
    this.statusCode = status
    this.headers = Object.fromEntries(headers)
  }
}

/** What a limiter does about requests that cannot be counted since they lack something, or get it wrong. */
export class InvalidRequests<Request> {
  readonly #where: string
  readonly #warnings: Warnings<LimiterWarning>
  readonly #passes: boolean
  readonly #reports: boolean
  readonly #needsRoute: boolean
  readonly #challenge: string | undefined
  /** When each fault was last warned of, by a monotonic clock. */
  readonly #warnedAt = new Map<Fault, number>()

  /** @throws SluiceError `INVALID_POLICY` */
  constructor(
    policy: Pick<PolicyChoice<Request>, 'where' | 'all'>,
    onInvalid: unknown,
    reports: boolean,
    warnings: Warnings<LimiterWarning>,
  ) {
    this.#warnings = warnings
    this.#where = policy.where
    this.#passes = oneOf<InvalidOption>(policy.where, 'onInvalid', onInvalid, ['reject', 'pass']) === 'pass'
    this.#reports = reports
    const keys = policy.all.flatMap(({ keys }) =>
      keys.flatMap((key): (KeyFunction<Request> | undefined)[] => [...(key?.parts ?? [key])]),
    )
    this.#needsRoute = keys.some((key) => kindOf(key) === 'route')
    this.#challenge = keys.find((key) => key?.challenge !== undefined)?.challenge
  }

  /**
   * What becomes of a request that could not be counted.
   *
   * @throws what was thrown, if the request is not to blame; else, with `onInvalid: 'pass'`, an error of status 400 or 401
   */
  handle(thrown: unknown, units: unknown, context: HttpContext<Request>): Outcome {
    const fault = this.#faultIn(thrown, units, context)
    // Reporting refuses nothing, and what cannot be counted is not counted.
    if (!this.#reports && isGone(context.response)) {
      // Limiters before this one have no handler to wait for either.
      void releasePermits(context.response)
      return ENDED
    }
    this.#warn(fault)
    if (this.#reports) return SKIPPED
    const challenge = fault.fault === 'missing key' ? this.#challenge : undefined
    const status = challenge === undefined ? 400 : 401
    const authenticate: HeaderField[] = challenge === undefined ? [] : [['WWW-Authenticate', challenge]]
    if (this.#passes) throw new InvalidRequest(fault, status, authenticate)
    return replyOutcome(problemReply(status, TITLES[status], undefined, authenticate))
  }

  #faultIn(thrown: unknown, units: unknown, context: HttpContext<Request>): RequestFault {
    const error = this.#named(thrown)
    // A number is what a function made of the request; anything else is a function that forgot to make one.
    if (error instanceof SluiceError && error.code === 'INVALID_COST' && typeof units === 'number') {
      return new RequestFault('wrong cost', error.message, { cause: error })
    }
    const isUnrouted = this.#needsRoute && context.route === undefined
    if (error instanceof RequestFault && !(isUnrouted && error.fault === 'missing key')) return error
    throw error
  }

  /** A key function does not know which limiter calls it. */
  #named(thrown: unknown): unknown {
    if (!(thrown instanceof SluiceError) || thrown.message.startsWith(this.#where)) return thrown
    const message = `${this.#where}: ${thrown.message}`
    return thrown instanceof RequestFault
      ? new RequestFault(thrown.fault, message, { cause: thrown })
      : new SluiceError(thrown.code, message, { cause: thrown })
  }

  /** Once for each fault and minute, or clients would fill the log. */
  #warn({ fault, message }: RequestFault): void {
    const now = performance.now()
    const last = this.#warnedAt.get(fault)
    if (last !== undefined && now - last < WARN_AGAIN_MS) return
    this.#warnedAt.set(fault, now)
    const what = this.#reports ? 'was not limited' : 'was refused'
    this.#warnings.emit(
      'SLUICE_INVALID_REQUEST',
      `${message}; the request ${what}, as others may be for a minute without a warning`,
    )
  }
}
