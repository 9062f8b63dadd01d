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

/** What becomes of a request that could not be counted: `thrown` says why. */
export type HandleInvalid<Request> = (thrown: unknown, units: unknown, context: HttpContext<Request>) => Outcome

/**
 * What a limiter does about requests that cannot be counted since they lack something, or get it wrong. The returned function
 * throws what was thrown, if the request is not to blame; else, with `onInvalid: 'pass'`, an error of status 400 or 401.
 * `reports`: whether it refuses nothing.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function invalidRequests<Request>(
  { where, all }: Pick<PolicyChoice<Request>, 'where' | 'all'>,
  onInvalid: unknown,
  reports: boolean,
  warnings: Warnings<LimiterWarning>,
): HandleInvalid<Request> {
  const passes = oneOf<InvalidOption>(where, 'onInvalid', onInvalid, ['reject', 'pass']) === 'pass'
  const keys = all.flatMap(({ keys }) =>
    keys.flatMap((key): (KeyFunction<Request> | undefined)[] => [...(key?.parts ?? [key])]),
  )
  const needsRoute = keys.some((key) => kindOf(key) === 'route')
  const ofKeys = keys.find((key) => key?.challenge !== undefined)?.challenge
  const warn = warnEachMinute(warnings, reports ? 'was not limited' : 'was refused')

  return (thrown, units, context) => {
    const error = named(thrown, where)
    const fault = faultIn(error, units)
    const isUnrouted = needsRoute && context.route === undefined
    if (!fault || (isUnrouted && fault.fault === 'missing key')) throw error
    // Reporting refuses nothing, and what cannot be counted is not counted.
    if (!reports && isGone(context.response)) {
      // Limiters before this one have no handler to wait for either.
      void releasePermits(context.response)
      return ENDED
    }
    warn(fault)
    if (reports) return SKIPPED
    const challenge = fault.fault === 'missing key' ? ofKeys : undefined
    const status = challenge === undefined ? 400 : 401
    const authenticate: HeaderField[] = challenge === undefined ? [] : [['WWW-Authenticate', challenge]]
    if (passes) throw new InvalidRequest(fault, status, authenticate)
    return replyOutcome(problemReply(status, TITLES[status], undefined, authenticate))
  }
}

/** What a request is to blame for; undefined where that is something else. */
function faultIn(error: unknown, units: unknown): RequestFault | undefined {
  // A number is what a function made of the request; anything else is a function that forgot to make one.
  if (error instanceof SluiceError && error.code === 'INVALID_COST' && typeof units === 'number') {
    return new RequestFault('wrong cost', error.message, { cause: error })
  }
  return error instanceof RequestFault ? error : undefined
}

/** A key function does not know which limiter calls it. */
function named(thrown: unknown, where: string): unknown {
  if (!(thrown instanceof SluiceError) || thrown.message.startsWith(where)) return thrown
  const message = `${where}: ${thrown.message}`
  return thrown instanceof RequestFault
    ? new RequestFault(thrown.fault, message, { cause: thrown })
    : new SluiceError(thrown.code, message, { cause: thrown })
}

/** Warns once for each fault and minute, or clients would fill the log. */
function warnEachMinute(warnings: Warnings<LimiterWarning>, what: string): (fault: RequestFault) => void {
  /** By a monotonic clock. */
  const warnedAt = new Map<Fault, number>()
  return ({ fault, message }) => {
    const now = performance.now()
    const last = warnedAt.get(fault)
    if (last !== undefined && now - last < WARN_AGAIN_MS) return
    warnedAt.set(fault, now)
    warnings.emit(
      'SLUICE_INVALID_REQUEST',
      `${message}; the request ${what}, as others may be for a minute without a warning`,
    )
  }
}
