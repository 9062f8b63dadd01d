import type { Algorithm } from '../../store/algorithms.js'
import { type Duration, spanMs } from '../../util/duration.js'
import { invalidPolicy, neverBeside } from '../../util/errors.js'
import { refuseFactory } from '../../util/factories.js'
import { FORMS } from '../../util/option-hints.js'
import { fieldsOf } from '../../util/property-of.js'
import { headerName, knownOptions, oneOf, optionalFunction, wholeNumber } from '../../util/validate.js'
import { checkUnit, idOfUnit } from '../units.js'
import { refuseCalendar } from './calendar.js'
import { leased, leaseOf } from './lease.js'
import type { CommonOptions, LeasableOptions, Limit, LimitCalendar, OrFunction, UnitOptions } from './limit.js'
import { checkReserve, reserveSteps } from './reserve.js'

export interface RateOptions<Subject> extends CommonOptions<Subject> {
  /** Units per window; whole, 0 or more. 0 refuses everything. */
  readonly limit: OrFunction<number, Subject>
  /** Whole milliseconds or a duration such as `'1m'`. */
  readonly window: OrFunction<Duration, Subject>
}

/** The option names of a limit and its window. */
export interface RateNames {
  readonly limit: string
  readonly window: string
}

const USUAL_NAMES: RateNames = { limit: 'limit', window: 'window' }

/** The part that all constructors share: checks common options, and freezes. */
export function makeLimit<Subject>(
  algorithm: Algorithm,
  given: RateOptions<Subject>,
  extraOptions: readonly string[],
  resolveUnleased: Limit['resolve'],
  names: RateNames = USUAL_NAMES,
  calendar?: LimitCalendar,
): Limit<Subject> {
  const known = ['name', 'limit', 'window', 'key', 'respond', 'reserve', ...extraOptions]
  knownOptions(algorithm, given, known)
  // Not those that others have: `Object.prototype` may have one of these.
  const options = fieldsOf(given, known)
  const { limit, window } = checkCommon(algorithm, options, names)
  const { lease: leaseOptions } = options as LeasableOptions
  const lease = leaseOptions === undefined ? undefined : leaseOf(algorithm, leaseOptions)
  const { unit: givenUnit = 'requests' } = options as UnitOptions
  const unit = checkUnit(algorithm, givenUnit)
  const ofUnit = idOfUnit(unit)
  const { estimate } = options as UnitOptions
  if (estimate !== undefined) oneOf(algorithm, 'estimate', estimate, ['cap'])
  const resolve: typeof resolveUnleased = (where, limit, windowMs, firstDay) => {
    const plain = resolveUnleased(where, limit, windowMs, firstDay)
    const resolution = ofUnit ? { ...plain, id: plain.id + ofUnit, carriedId: plain.carriedId + ofUnit } : plain
    return lease ? leased(where, resolution, lease) : resolution
  }
  // As both are known here, numbers that could round are rejected here.
  const resolved =
    typeof limit === 'number' && typeof window === 'number' ? resolve(algorithm, limit, window) : undefined
  // Options that are decided once for a request, and not step by step during its response.
  for (const field of unit === 'response-bytes' ? (['lease', 'reserve'] as const) : []) {
    const value = (options as LeasableOptions & CommonOptions<Subject>)[field]
    if (value) neverBeside(algorithm, field, 'unit "response-bytes"', value)
  }
  if (options.reserve !== undefined) {
    if (lease) neverBeside(algorithm, 'lease', 'reserve', leaseOptions)
    const steps = reserveSteps(algorithm, options.reserve)
    if (resolved) checkReserve(algorithm, steps, resolved.report.capacity)
  }
  return Object.freeze({
    algorithm,
    unit: unit,
    limit,
    window,
    resolve,
    key: options.key,
    respond: options.respond,
    name: options.name,
    reserve: options.reserve,
    lease: leaseOptions,
    estimate,
    calendar: calendar && Object.freeze(calendar),
    policy: undefined,
    carry: undefined,
    cost: undefined,
    maxHold: undefined,
    holdPermits: undefined,
  })
}

/**
 * Checks the options that all limits have. Returns limit and window ready to use: numbers, unless they are functions.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function checkCommon<Subject>(where: string, options: RateOptions<Subject>, names: RateNames = USUAL_NAMES) {
  optionalFunction(where, 'key', options.key, FORMS.key)
  if (options.respond !== undefined && typeof options.respond !== 'function') {
    invalidPolicy(where, 'respond', 'a responder such as reject()', options.respond)
  }
  refuseFactory(where, 'respond', options.respond)
  if (options.name !== undefined) headerName(where, 'name', options.name)
  const { limit, window } = options
  refuseCalendar(where, names.window, window)
  return {
    limit: typeof limit === 'function' ? limit : wholeNumber(where, names.limit, limit, 0),
    window: typeof window === 'function' ? window : spanMs(where, names.window, window),
  }
}
