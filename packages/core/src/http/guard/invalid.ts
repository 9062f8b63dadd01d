import { kindOf, partsOf } from '../../policy/keyed.js'
import type { KeyFunction } from '../../policy/limits/limit.js'
import type { PolicyChoice } from '../../policy/policy.js'
import { type HttpContext, isGone } from '../../request/context.js'
import { SluiceError } from '../../util/errors.js'
import { propertyOf } from '../../util/property-of.js'
import { type Fault, RequestFault } from '../../util/request-fault.js'
import { oneOf } from '../../util/validate.js'
import type { LimiterWarning, Warnings } from '../../util/warnings.js'
import { hasWrongNumber } from '../charging/cost.js'
import { unstored } from '../headers/unstored.js'
import type { HeaderField } from '../headers/writer.js'
import { problemReply } from '../responders/problem.js'
import { end, errorOutcome, type Outcome, replyOutcome, SKIPPED } from './outcome.js'

/** The responder to requests with a missing or invalid key or an invalid cost: the limiter, or the framework's error handler. */
export type InvalidOption = 'reject' | 'pass'

const WARN_AGAIN_MS = 60_000
const TITLES = { 400: 'Bad Request', 401: 'Unauthorized' } as const

/** An error for the framework's error handler. Its message may be sent to clients; the error with the fault is its cause. */
class InvalidRequest extends SluiceError {
  readonly status: number
  readonly statusCode: number
  /** Read by Express and Koa: the message may be sent. */
  readonly expose = true
  readonly headers: Readonly<Record<string, string>>

  constructor(cause: SluiceError, status: 400 | 401, headers: readonly HeaderField[]) {
    super(cause.code, TITLES[status], { cause })
    this.status = status
    this.statusCode = status
    this.headers = Object.fromEntries(headers)
  }
}

const KEY_REMEDY = Symbol('key remedy')

/** A remedy for a request without a key, where an adapter knows one. It is asked for a warning alone. */
export type KeyRemedy = (context: HttpContext) => string | undefined

/** Adds a remedy to the warning of a request without a key. */
export function setKeyRemedy(context: HttpContext, remedy: KeyRemedy): void {
  ;(context as { [KEY_REMEDY]?: KeyRemedy })[KEY_REMEDY] = remedy
}

function keyRemedyOf(context: HttpContext): string {
  const remedy = (context as { [KEY_REMEDY]?: KeyRemedy })[KEY_REMEDY]?.(context)
  return remedy === undefined ? '' : `; ${remedy}`
}

/** Returns the outcome of a request that could not be counted, given the thrown error. */
export type HandleInvalid<Request> = (thrown: unknown, units: unknown, context: HttpContext<Request>) => Outcome

/**
 * Handles requests that cannot be counted because of something missing or invalid. The returned function throws the given error
 * if the request did not cause it. With `onInvalid: 'pass'`, the outcome is an error of status 400 or 401.
 * `reports`: whether the limiter refuses nothing.
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
    keys.flatMap((key): readonly (KeyFunction<Request> | undefined)[] => (key ? partsOf(key) : [key])),
  )
  const needsRoute = keys.some((key) => kindOf(key) === 'route')
  const challenges = keys.map((key) => key && propertyOf(key, 'challenge'))
  const ofKeys = challenges.find((challenge) => challenge !== undefined)
  const warn = warnEachMinute(where, warnings, reports ? 'was not limited' : 'was refused')

  return (thrown, units, context) => {
    const fault = faultIn(thrown, units)
    const isUnrouted = needsRoute && context.route === undefined
    if (!fault || (isUnrouted && fault === 'missing key')) throw named(thrown, where, warnings)
    // A limiter that only reports refuses nothing, and does not count these requests.
    if (!reports && isGone(context.response)) return end(context)
    warn(fault, thrown as SluiceError, context)
    if (reports) return SKIPPED
    const challenge = fault === 'missing key' ? ofKeys : undefined
    const status = challenge === undefined ? 400 : 401
    const authenticate: HeaderField[] = challenge === undefined ? [] : [['WWW-Authenticate', challenge]]
    if (!passes) return replyOutcome(problemReply(status, TITLES[status], undefined, authenticate), context)
    const headers = unstored(authenticate, context)
    return errorOutcome(new InvalidRequest(named(thrown, where, warnings) as SluiceError, status, headers), headers)
  }
}

/** The request's fault; undefined if the request did not cause the error. */
function faultIn(error: unknown, units: unknown): Fault | undefined {
  if (error instanceof RequestFault) return error.fault
  // A number was computed from the request. Any other value is a mistake in the function, as is a unit that no limit counts.
  const isCost = error instanceof SluiceError && error.code === 'INVALID_COST' && hasWrongNumber(units)
  return isCost ? 'wrong cost' : undefined
}

/** Adds the limiter's name to an error that is thrown on. A key function does not know it. */
function named(thrown: unknown, where: string, { withPlace }: Pick<Warnings<never>, 'withPlace'>): unknown {
  if (!(thrown instanceof SluiceError)) return thrown
  const message = withPlace(namedMessage(thrown, where))
  return message === thrown.message ? thrown : new SluiceError(thrown.code, message, { cause: thrown })
}

function namedMessage({ message }: SluiceError, where: string): string {
  return message.startsWith(where) ? message : `${where}: ${message}`
}

/**
 * Warns once for each fault and minute, so that clients cannot fill the log. An error takes 10 µs to make, so none is made
 * with the limiter's name for a client that gets no more than a 400.
 */
function warnEachMinute(where: string, warnings: Warnings<LimiterWarning>, what: string) {
  /** By a monotonic clock. */
  const warnedAt = new Map<Fault, number>()
  return (fault: Fault, error: SluiceError, context: HttpContext): void => {
    const now = performance.now()
    const last = warnedAt.get(fault)
    if (last !== undefined && now - last < WARN_AGAIN_MS) return
    warnedAt.set(fault, now)
    warnings.emit(
      'SLUICE_INVALID_REQUEST',
      `${namedMessage(error, where)}${fault === 'missing key' ? keyRemedyOf(context) : ''}; the request ${what}, as others may be for a minute without a warning`,
    )
  }
}
