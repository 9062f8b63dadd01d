import type { Units } from '../policy/costs.js'
import { type BasicPolicyOptions, POLICY_OPTIONS } from '../policy/policy.js'
import type { Store, WaitingTurn } from '../store/store.js'
import type { FORMS, Use } from '../util/option-hints.js'
import { knownOptions } from '../util/validate.js'
import type { LimiterWarningsOption } from '../util/warnings.js'
import type { Verdict } from '../verdict/verdict.js'
import { UNAVAILABLE_OPTIONS, type UnavailableOptions } from './fallback.js'

/** The options of a limiter without those of features. */
export interface BasicLimiterOptions<Subject> extends BasicPolicyOptions<Subject>, UnavailableOptions {
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

export const BASIC_LIMITER_OPTIONS = [
  ...POLICY_OPTIONS,
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
