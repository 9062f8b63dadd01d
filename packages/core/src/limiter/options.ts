import { LIST_OPTIONS, type ListOptions } from '../features/lists/options.js'
import type { PolicyOptions } from '../features/options.js'
import type { Units } from '../policy/costs.js'
import { POLICY_OPTIONS } from '../policy/policy.js'
import type { Store, WaitingTurn } from '../store/store.js'
import type { Duration } from '../util/duration.js'
import { invalidPolicy } from '../util/errors.js'
import type { FORMS, OtherNames, Use } from '../util/option-hints.js'
import { knownOptions, wholeNumber } from '../util/validate.js'
import type { LimiterWarningsOption } from '../util/warnings.js'
import type { Verdict } from '../verdict/verdict.js'
import { UNAVAILABLE_OPTIONS, type UnavailableOptions } from './fallback.js'

export interface LimiterOptions<Subject>
  extends PolicyOptions<Subject>,
    ListOptions<Subject>,
    UnavailableOptions,
    OtherNames<(typeof LIMITER_OPTIONS)[number]> {
  /** The store of the state. @default a memory store of this limiter's own */
  readonly store?: Store | Use<typeof FORMS.store, Store>
  /**
   * Called with each verdict of `consume`, and the last one of an `acquire`, before they are returned.
   *
   * Not called for a `peek`. An error that it throws rejects the call; the charge stays. A returned promise is not
   * awaited; its rejection becomes a warning (`SluiceWarning`, code `SLUICE_LISTENER_FAILED`).
   * @default none
   */
  readonly onVerdict?: (subject: Subject, verdict: Verdict) => unknown
  /** Silences warnings of this limiter, one by one: `{ SLUICE_SAME_NAME: false }`. @default all are emitted */
  readonly warnings?: LimiterWarningsOption
}

export const LIMITER_OPTIONS = [
  ...POLICY_OPTIONS,
  'consistency',
  'sharedTurns',
  'charges',
  'ban',
  ...LIST_OPTIONS,
  ...UNAVAILABLE_OPTIONS,
  'store',
  'onVerdict',
  'warnings',
] as const

export interface CostOptions {
  /**
   * Units to take: of `requests`, or by name, such as `{ tokens: 812, cents: 3 }`.
   *
   * Whole, 0 or more. The number 0 takes nothing. A unit that is not named is 1 for `requests` and
   * `concurrent-requests`. Others are 0 then, and need room for 1.
   * @default 1
   */
  readonly cost?: number | Units
  /** Bytes to take from limits whose unit is `content-bytes`. Required to consume where there are such limits. */
  readonly bytes?: number
  /**
   * Bytes to take from limits whose unit is `response-bytes`.
   *
   * Required to consume where there are such limits. 0 requires room for one.
   * @default for a peek 0
   */
  readonly responseBytes?: number
  /** The priority for `reserve`. @default by the policy's `priority`, else 0 */
  readonly priority?: number
  /** The tier, for a key that is given as text to a limiter of requests. @default by the policy's `tier` */
  readonly tier?: string
}

/** The options of a decision beside its cost. */
export interface DecisionOptions {
  readonly bytes: number | undefined
  readonly responseBytes: number | undefined
  readonly priority: number | undefined
  readonly tier: string | undefined
  /** Whether the store itself has to decide, without the deny cache. @default false */
  readonly fresh: boolean | undefined
  /** The turn, where the request waits for it across processes. */
  readonly turn: WaitingTurn | undefined
  /** Whether a refusal is a strike, where the policy bans. False while the request may still be admitted. @default true */
  readonly strikes: boolean | undefined
}

export interface BlockOptions {
  /** The duration: whole milliseconds or text such as `'1h'`, up to 100 years, or `Infinity`: until it is removed. */
  readonly for: Duration
  /** Shown in verdicts of blocked requests; up to 200 characters. @default '' */
  readonly reason?: string
}

/** The reason of a block or a strike. @throws SluiceError `INVALID_POLICY` */
export function checkReason(where: string, reason: unknown): string {
  if (typeof reason === 'string' && reason.length <= 200) return reason
  return invalidPolicy(where, 'reason', 'a string of up to 200 characters', reason)
}

const COST_OPTIONS = ['cost', 'bytes', 'responseBytes', 'priority', 'tier'] as const
/** Options of decisions, which are read for each. Most are read from an object that has none of them. */
export const DECISION_OPTIONS = [...COST_OPTIONS, 'fresh', 'turn', 'strikes'] as const
export const NO_OPTIONS: DecisionOptions & { readonly cost: undefined } = Object.freeze({
  cost: undefined,
  bytes: undefined,
  responseBytes: undefined,
  priority: undefined,
  tier: undefined,
  fresh: undefined,
  turn: undefined,
  strikes: undefined,
})

/** @throws SluiceError `INVALID_POLICY` for an unknown option */
export function checkCostOptions(where: string, method: string, options: CostOptions): void {
  if (options !== NO_OPTIONS && !isCostOptions(options)) knownOptions(`${where}: ${method}`, options, COST_OPTIONS)
}

/** The options of a decision, of checked ones. */
export function decisionOptions(options: CostOptions): DecisionOptions {
  if (options === NO_OPTIONS) return NO_OPTIONS
  const { bytes, responseBytes, priority, tier } = options
  return { bytes, responseBytes, priority, tier, fresh: undefined, turn: undefined, strikes: undefined }
}

/** The check of `knownOptions`, at nearly no cost for the small objects that callers make for each decision. */
function isCostOptions(options: unknown): boolean {
  if (typeof options !== 'object' || options === null || isPolluted()) return false
  for (const field in options) {
    if (field === 'cost' || field === 'bytes' || field === 'responseBytes') continue
    if (field !== 'priority' && field !== 'tier') return false
  }
  return !Array.isArray(options)
}

/** Whether every object has one of them, by its prototype. */
function isPolluted(): boolean {
  const all: object = Object.prototype
  return 'cost' in all || 'bytes' in all || 'responseBytes' in all || 'priority' in all || 'tier' in all
}

export interface StrikeOptions {
  /** The number of strikes that it counts for: 1 to 1,000,000. @default 1 */
  readonly weight?: number
  /** Shown in the verdicts of the ban that it may start; up to 200 characters. @default '' */
  readonly reason?: string
}

export const MAX_WEIGHT = 1_000_000

/** @throws SluiceError `INVALID_POLICY` */
export function checkedStrike(policy: string, options: StrikeOptions): Required<StrikeOptions> {
  const where = `${policy}: strike`
  knownOptions(where, options, ['weight', 'reason'])
  const { weight = 1, reason = '' } = options
  wholeNumber(where, 'weight', weight, 1, MAX_WEIGHT)
  return { weight, reason: checkReason(policy, reason) }
}
