import type { HttpContext } from '../request/context.js'
import { startOf } from '../store/identity.js'
import { CHARGE, CONSUME, NO_TERMS, type Op, type QuotaUnit } from '../store/store.js'
import { arePermits, isOwnUnit } from '../store/units.js'
import { type Duration, durationMs, durationText, spanMs } from '../util/duration.js'
import { invalidPolicy, neverBeside, SluiceError, show, wrongPolicy } from '../util/errors.js'
import { FORMS, type Use } from '../util/option-hints.js'
import { Parts } from '../util/parts.js'
import { propertiesOf } from '../util/property-of.js'
import { isThenable } from '../util/thenable.js'
import { headerName, oneOf, optionalFunction, wholeNumber } from '../util/validate.js'
import { ignorePromises, type MaybePromise, whenAllKnown } from '../util/when-known.js'
import { carriedForm } from './carry.js'
import { cellsFor, type LimitOfCell } from './cells.js'
import { countingDebts, countingRefusals } from './counted-beyond.js'
import { freeLimitName, takenNames } from './free-name.js'
import { checkedKey } from './key.js'
import { finenessOf, isSameKey, kindOf } from './keyed.js'
import { checkKinds, type Given, type GivenKeys, valueFor } from './kinds.js'
import { firstDay } from './limits/calendar.js'
import { checkCommon } from './limits/common.js'
import { checkLeases } from './limits/lease.js'
import type { KeyFunction, Limit, OrFunction, Resolution } from './limits/limit.js'
import { reserveSteps } from './limits/reserve.js'
import { defaultLimit } from './limits/sliding-window.js'
import { type ReadablePlan, readablePlan, type TierOf } from './plan.js'
import { planOf } from './plan-of-kind.js'
import type { PolicyBasis, PolicyFeature, PolicyPart } from './policy-feature.js'
import { checkPriority, type PriorityFunction, type PriorityOption, priorityFor } from './priority.js'
import { unitsOf } from './units.js'

/** The options of a policy without those of features. */
export interface BasicPolicyOptions<Subject> {
  /** Names the policy in keys, headers and errors: letters, digits, `_`, `-`. @default 'default' */
  readonly name?: string
  /** Units per window, for a policy of one limit. @default none */
  readonly limit?: OrFunction<number, Subject>
  /** Whole milliseconds or a duration such as `'1m'`; beside `limit`. @default none */
  readonly window?: OrFunction<Duration, Subject> | Use<typeof FORMS.window, Duration>
  /**
   * Several limits, decided together, all or none; instead of `limit` and `window`.
   *
   * Limits of one identity usually share their state's key: where the numbers of one change, all of them begin anew.
   * See docs/redis.md.
   * @default none
   */
  readonly limits?: readonly (Limit<Subject> | Use<typeof FORMS.limits, Limit<Subject>>)[]
  /** The key that is counted, for limits that name none of their own. @default `byIp()`; without HTTP the argument */
  readonly key?: KeyFunction<Subject> | Use<typeof FORMS.key, KeyFunction<Subject>>
  /**
   * Whether a refused request is charged too.
   *
   * Windows and logs charge it in full, so that a client that goes on asking more often than the limit stays refused.
   * Buckets are filled, no further. A cost that can never fit is not charged.
   * @default 'none'
   */
  readonly onDeny?: 'none' | 'charge'
  /**
   * Limits by the name of a tier, instead of `limits`.
   *
   * Each tier has state of its own. A limit that is in several tiers as one object is one limit over all of them.
   * @default none
   */
  readonly tiers?: Readonly<Record<string, readonly Limit<Subject>[]>>
  /** Names the tier of a request; beside `tiers`. May be async. An unknown name is an error. @default none */
  readonly tier?: (subject: Subject, context: HttpContext<Subject>) => string | PromiseLike<string>
  /** Higher comes first, where a limit has a `reserve` and in queues: a number by tier, or a function. @default 0 */
  readonly priority?: PriorityOption<Subject>
}

export const POLICY_OPTIONS = [
  'name',
  'limit',
  'window',
  'limits',
  'key',
  'onDeny',
  'tiers',
  'tier',
  'priority',
] as const

/** One policy, or one by tier: what a limiter decides by. */
export interface PolicyChoice<Subject> {
  readonly name: string
  readonly where: string
  readonly limits: readonly Limit<Subject>[]
  readonly all: readonly Policy<Subject>[]
  /** The units that its limits count. */
  readonly units: ReadonlySet<QuotaUnit>
  /** What features have added. */
  readonly parts: Parts
  /** The policy for a request, or of the tier that is named; a promise only where the request's tier is one. */
  of(subject: Subject, context: HttpContext<Subject>, tier?: string): Policy<Subject> | Promise<Policy<Subject>>
  /**
   * The policy in force in place of one that a request waits by. Undefined if it is gone, or counts other units, or where
   * policies stay.
   */
  inPlaceOf(policy: Policy<Subject>, subject: Subject): MaybePromise<Policy<Subject> | undefined>
}

/** A request as a policy resolves it. */
export interface Resolved<Subject> {
  readonly policy: Policy<Subject>
  readonly plan: ReadablePlan
  readonly identities: readonly string[]
  readonly priority: number
}

/** Cached plans per policy whose limits are functions of the request. */
const MAX_PLANS = 1000

/** A named list of limits that are decided together. Checked when it is made; knows no store. */
export class Policy<Subject> implements PolicyChoice<Subject> {
  readonly name: string
  readonly where: string
  readonly limits: readonly Limit<Subject>[]
  /** The op that charges a request. */
  readonly consume: Op
  /** The tier that it is the policy of. */
  readonly tier: string | undefined
  /** Undefined if all requests have priority 0. */
  readonly priority: PriorityFunction<Subject> | undefined
  /** The distinct key functions of all limits; `undefined` is the policy's own default. */
  readonly keys: readonly (KeyFunction<Subject> | undefined)[]
  /** The beginnings of the identities of each of them: their kind. */
  readonly starts: readonly string[]
  /** The kinds of what it counts, each once. */
  readonly kinds: readonly string[]
  readonly units: ReadonlySet<QuotaUnit>
  readonly parts = new Parts()
  readonly #features: readonly PolicyPart[]
  readonly #keyOf: readonly number[]
  readonly #tier: TierOf | undefined
  readonly #plans = new Map<string, ReadablePlan>()
  readonly #static: ReadablePlan | undefined

  constructor(options: BasicPolicyOptions<Subject>, features: readonly PolicyFeature[], tier?: TierOf) {
    this.#tier = tier
    this.tier = tier?.name
    this.name =
      options.name === undefined ? 'default' : headerName(`policy ${show(options.name)}`, 'name', options.name)
    this.where = `policy "${this.name}"`
    const { where } = this
    optionalFunction(where, 'key', options.key, FORMS.key)
    const { onDeny = 'none' } = options
    const chargesRefusals = oneOf(where, 'onDeny', onDeny, ['none', 'charge']) === 'charge'
    this.consume = chargesRefusals ? CHARGE : CONSUME
    this.priority = priorityFor(where, options.priority, this.tier)
    this.limits = limitsOf(where, options, features)
    for (const field of ['reserve', 'lease'] as const) {
      if (!chargesRefusals || this.limits.every((limit) => limit[field] === undefined)) continue
      wrongPolicy(`${where}: ${field}: expected none beside onDeny: "charge"`)
    }
    checkLeases(where, this.limits)
    const keyFunctions = this.limits.map((limit) => limit.key ?? options.key)
    checkKinds(where + (tier ? `: tiers: ${tier.name}` : ''), keyFunctions, tier?.known ?? new Map())
    this.keys = keyFunctions.filter((key, i) => keyFunctions.findIndex((other) => isSameKey(other, key)) === i)
    this.#keyOf = keyFunctions.map((key) => this.keys.findIndex((other) => isSameKey(other, key)))
    this.starts = this.keys.map((key) => startOf(kindOf(key)))
    this.kinds = [...new Set(this.keys.map(kindOf))]
    refuseEqualNames(where, this.limits)
    this.units = unitsOf(where, this.limits)
    const { name, limits, kinds, keys, parts } = this
    const identityOf = (kind: string) => this.#finestOf(this.#indicesOf(kind))
    const basis: PolicyBasis = { where, name, limits, kinds, keys, identityOf, parts }
    this.#features = propertiesOf(features, 'policy').flatMap((add) => add(basis, options) ?? [])

    const values = this.limits.flatMap(valuesOf)
    this.#static = values.every((value) => typeof value !== 'function') ? this.#planFor(values) : undefined
  }

  /** Not a property: requests to stores have their policy, and must have no circles for those that make JSON of them. */
  get all(): readonly Policy<Subject>[] {
    return [this]
  }

  of(_subject: Subject, _context: HttpContext<Subject>, tier?: string): Policy<Subject> {
    if (tier !== undefined) invalidPolicy(this.where, 'tier', 'none, as there are no tiers', tier)
    return this
  }

  /** The plan for this request: the same object for the same numbers. */
  plan(subject: Subject, context: HttpContext<Subject>): ReadablePlan | Promise<ReadablePlan> {
    if (this.#static) return this.#static
    const values: unknown[] = []
    try {
      for (const value of this.limits.flatMap(valuesOf)) {
        values.push(typeof value === 'function' ? value(subject, context) : value)
      }
    } catch (error) {
      ignorePromises(values)
      throw error
    }
    return whenAllKnown(values, (known) => this.#planFor(known))
  }

  /** `given`: limit, window and first day of each limit in turn. */
  #planFor(given: readonly unknown[]): ReadablePlan {
    const { where } = this
    const values = this.limits.map(({ window, calendar }, i): NumbersOfLimit => {
      // A value that is no function was checked when the limit was made, and is in ms.
      const windowMs = typeof window === 'function' ? spanMs : durationMs
      const [limit, length, startsOn] = given.slice(3 * i)
      const first = calendar && firstDay(where, calendar.window, startsOn)
      return [wholeNumber(where, 'limit', limit, 0), windowMs(where, 'window', length), first]
    })
    const id = values.join()
    let plan = this.#plans.get(id)
    if (!plan) {
      if (this.#plans.size >= MAX_PLANS) this.#plans.clear()
      plan = this.#makePlan(values)
      this.#plans.set(id, plan)
    }
    return plan
  }

  /**
   * The identity of a request for each key.
   *
   * @throws SluiceError `INVALID_KEY`; a `RequestFault` where the request is to blame
   */
  identitiesOf(subject: Subject, context: HttpContext<Subject>): string[] | Promise<string[]> {
    const { keys, starts, where } = this
    const identities = new Array<string>(keys.length)
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]
      const value: unknown = key ? key(subject, context) : subject
      // An argument that is itself a promise: the caller forgot to await it.
      if (key && typeof value !== 'string' && isThenable(value)) {
        return this.#valuesOf(subject, context, i, value).then((late) =>
          starts.map((start, j) =>
            j < i ? (identities[j] as string) : start + checkedKey(where, late[j - i], context !== undefined),
          ),
        )
      }
      identities[i] = starts[i] + checkedKey(where, value, context !== undefined)
    }
    return identities
  }

  /** The results of the key functions from one on, of which that one has returned a promise. All are called at once. */
  async #valuesOf(subject: Subject, context: HttpContext<Subject>, from: number, first: unknown): Promise<unknown[]> {
    const values = [first]
    try {
      for (const key of this.keys.slice(from + 1)) values.push(key ? key(subject, context) : subject)
    } catch (error) {
      ignorePromises(values)
      throw error
    }
    return Promise.all(values)
  }

  /**
   * Resolves a request, as far as the caller has not done so already.
   *
   * @throws SluiceError `INVALID_KEY`, `INVALID_POLICY`; a `RequestFault` where the request is to blame
   */
  resolve(
    subject: Subject,
    context: HttpContext<Subject>,
    knownIdentities?: readonly string[],
    knownPlan?: ReadablePlan | Promise<ReadablePlan>,
    knownPriority?: number,
  ): Resolved<Subject> | Promise<Resolved<Subject>> {
    let identities: readonly string[] | Promise<readonly string[]> | undefined = knownIdentities
    let plan = knownPlan
    let priority: number | Promise<number>
    try {
      identities ??= this.identitiesOf(subject, context)
      plan ??= this.plan(subject, context)
      priority =
        knownPriority === undefined
          ? (this.priority?.(subject, context) ?? 0)
          : checkPriority(this.where, knownPriority)
    } catch (error) {
      ignorePromises([identities, plan])
      throw error
    }
    if (!(identities instanceof Promise || plan instanceof Promise || priority instanceof Promise)) {
      return { policy: this, identities, plan, priority }
    }
    return Promise.all([identities, plan, priority]).then(([identities, plan, priority]) => ({
      policy: this,
      identities,
      plan,
      priority,
    }))
  }

  /** Policies of options stay. */
  inPlaceOf(): undefined {
    return undefined
  }

  /** The keys of an identity that was given by hand. Undefined if nothing is counted by its kind. */
  given(identity: Given): GivenKeys | undefined {
    if (!this.kinds.includes(identity.kind)) return undefined
    const indices = this.#indicesOf(identity.kind)
    const identities = indices.map((i) => this.starts[i] + valueFor(this.where, this.keys[i], identity))
    const finest = identities[indices.indexOf(this.#finestOf(indices))] as string
    return { value: identity.value, identities, finest, planOf: (whole) => planOf(whole, indices) }
  }

  /** By the starts that requests are counted under: a function of the user's may get another `kind` later. */
  #indicesOf(kind: string): number[] {
    const start = startOf(kind)
    return this.starts.flatMap((each, i) => (each === start ? [i] : []))
  }

  /** Which key groups addresses into the smallest groups. */
  #finestOf(indices: readonly number[]): number {
    const fineness = indices.map((i) => finenessOf(this.keys[i]))
    return indices[fineness.indexOf(Math.max(...fineness))] as number
  }

  #makePlan(values: readonly NumbersOfLimit[]): ReadablePlan {
    const [countAlone] = propertiesOf(this.#features, 'countAlone')
    const resolutions = this.limits.map((limit, i) => {
      const resolution = limit.resolve(this.where, ...(values[i] as NumbersOfLimit))
      if (countAlone) return countAlone(resolution)
      if (limit.carry !== undefined) return carriedForm(resolution, limit)
      if (this.consume === CHARGE) return countingRefusals(resolution)
      return isOwnUnit(limit.unit) ? countingDebts(resolution) : resolution
    })
    const limits = namesFor(this.name, this.limits, resolutions).map((name, i): LimitOfCell => {
      const [definition, resolution] = [this.limits[i] as Limit, resolutions[i] as Resolution]
      const resolved = Object.freeze({ name, ...resolution.report, unit: definition.unit })
      return { definition, resolution, resolved, identity: this.#keyOf[i] as number }
    })
    const resolved = limits.map((limit) => limit.resolved)
    const cells = cellsFor(limits, this.#tier, countAlone !== undefined)
    const cellOf = resolved.map((limit) => cells.findIndex((cell) => cell.limits.includes(limit)))
    const reserves = cells.map((_, c) => {
      const { reserve } = this.limits[cellOf.indexOf(c)] as Limit
      return reserve === undefined ? [] : reserveSteps(this.where, reserve)
    })
    return readablePlan({
      ...NO_TERMS,
      ...Object.assign({}, ...propertiesOf(this.#features, 'terms').map((terms) => terms())),
      policy: this.name,
      cells,
      starts: this.starts,
      resolved,
      cellOf,
      reserves,
      calendars: cells.map((_, c) => (resolutions[cellOf.indexOf(c)] as Resolution).calendar),
      definitions: this.limits,
    })
  }
}

function limitsOf<Subject>(
  where: string,
  options: BasicPolicyOptions<Subject>,
  features: readonly PolicyFeature[],
): readonly Limit<Subject>[] {
  const { limit, window, limits } = options
  if (limits === undefined) {
    if (limit === undefined) invalidPolicy(where, 'limit', 'a limit and a window, or limits', limit)
    try {
      const rate = { limit, window: window as OrFunction<number, Subject> }
      const needsWindows = propertiesOf(features, 'needsWindows').some((needs) => needs(options))
      return Object.freeze([defaultLimit<Subject>(rate, needsWindows)])
    } catch (error) {
      // The one limit of a policy is known by the policy's name, not by the algorithm it became.
      throw error instanceof SluiceError
        ? new SluiceError(error.code, error.message.replace(/^\w+(?=:)/, where), { cause: error })
        : error
    }
  }
  if (limit !== undefined || window !== undefined) {
    neverBeside(where, 'limits', 'limit and window', limits)
  }
  if (!Array.isArray(limits) || limits.length === 0 || limits.length > MAX_LIMITS) {
    invalidPolicy(where, 'limits', `an array of 1 to ${MAX_LIMITS} limits`, limits)
  }
  limits.forEach((item, i) => {
    if (typeof item?.resolve !== 'function') {
      invalidPolicy(
        where,
        `limits[${i}]`,
        'a limit made by a constructor such as perMinute(20)',
        item,
        `write ${FORMS.limits}`,
      )
    }
    // A copy may have been changed after its check.
    if (!Object.isFrozen(item)) checkCommon(`${where}: limits[${i}]`, item)
  })
  return Object.freeze([...limits])
}

type NumbersOfLimit = readonly [limit: number, windowMs: number, firstDay: number | undefined]

/** What may be a function of the request: limit, window and first day. */
function valuesOf({ limit, window, calendar }: Limit): unknown[] {
  return [limit, window, calendar?.startsOn]
}

/** Most limits in one decision. */
export const MAX_LIMITS = 32

function refuseEqualNames(where: string, limits: readonly Limit[]): void {
  const seen = new Set<string>()
  for (const { name } of limits) {
    if (name === undefined) continue
    // Without regard to case: clients may fold the names of structured fields.
    if (seen.has(name.toLowerCase())) invalidPolicy(where, 'name', 'limit names that differ by more than case', name)
    seen.add(name.toLowerCase())
  }
}

/** A name for each limit: its own; the policy's, if it is the only one; or the policy's with its window. */
function namesFor(policy: string, limits: readonly Limit[], resolutions: readonly Resolution[]): string[] {
  const taken = takenNames(limits.map(({ name }) => name))
  return limits.map(({ name, unit }, i) => {
    if (name !== undefined) return name
    const { report } = resolutions[i] as Resolution
    const window = report.calendar ?? durationText(report.windowMs)
    const kind = arePermits(unit) ? report.algorithm : window
    return freeLimitName(limits.length === 1 ? policy : `${policy}-${kind}`, taken)
  })
}
