import type { ListOptions } from '../lists/options.js'
import type { PolicyOptions } from '../policy/policy.js'
import type { Store, WaitingTurn } from '../store/store.js'
import type { Duration } from '../util/duration.js'
import { invalidPolicy } from '../util/errors.js'
import { knownOptions, wholeNumber } from '../util/validate.js'
import type { LimiterWarningsOption } from '../util/warnings.js'
import type { Verdict } from '../verdict/verdict.js'
import type { UnavailableOptions } from './fallback.js'

export interface LimiterOptions<Subject> extends PolicyOptions<Subject>, ListOptions<Subject>, UnavailableOptions {
  /** Where state lives. @default a memory store of this limiter's own */
  readonly store?: Store
  /**
   * Called with each verdict of `consume`, and the one with which `acquire` ends, before they are returned; not for a `peek`.
   * What it throws rejects the call; what was charged stays charged. No promise is waited for: one that rejects is
   * warned of (`SluiceWarning`, code `SLUICE_LISTENER_FAILED`).
   */
  readonly onVerdict?: (subject: Subject, verdict: Verdict) => unknown
  /** Silences warnings of this limiter, one by one: `{ SLUICE_SAME_NAME: false }`. */
  readonly warnings?: LimiterWarningsOption
}

export interface CostOptions {
  /** Units this takes from every limit: whole, 0 or more; 0 peeks. @default 1 */
  readonly cost?: number
  /** Bytes this takes from limits whose unit is `content-bytes`; needed to consume where there are such limits. */
  readonly bytes?: number
  /**
   * Bytes this takes from limits whose unit is `response-bytes`; needed to consume where there are such limits. 0 asks for room for
   * one. @default for a peek 0
   */
  readonly responseBytes?: number
  /** What `reserve` goes by. @default by the policy's `priority`, else 0 */
  readonly priority?: number
  /** The tier, for a key that is given as text to a limiter of requests. @default by the policy's `tier` */
  readonly tier?: string
}

/** The options of a decision beside its cost. */
export interface DecisionOptions extends Omit<CostOptions, 'cost'> {
  /** Whether the store itself has to decide, without the deny cache. @default false */
  readonly fresh?: boolean
  /** Whose turn it is, where it waits for that across processes. */
  readonly turn?: WaitingTurn | undefined
  /** Whether a refusal is a strike, where the policy bans: not while it may still be admitted in the end. @default true */
  readonly strikes?: boolean
}

export interface BlockOptions {
  /** How long: whole milliseconds or a duration such as `'1h'`, up to 100 years, or `Infinity`: until it is removed. */
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
/** Options of decisions, which are read for each, most of them in an object that names none. */
export const DECISION_OPTIONS = [...COST_OPTIONS, 'fresh', 'turn', 'strikes'] as const
/** Each is its own, so that it inherits none. */
export const NO_OPTIONS: DecisionOptions = Object.freeze(
  Object.fromEntries(DECISION_OPTIONS.map((name) => [name, undefined])),
)

/** @throws SluiceError `INVALID_POLICY` for an option that is none */
export function checkCostOptions(where: string, method: string, options: CostOptions): void {
  if (options !== NO_OPTIONS && !isCostOptions(options)) knownOptions(`${where}: ${method}`, options, COST_OPTIONS)
}

/** The check of `knownOptions`, nearly free for the few options that callers make anew for each decision. */
function isCostOptions(options: unknown): boolean {
  if (typeof options !== 'object' || options === null || isPolluted()) return false
  for (const field in options) {
    if (field === 'cost' || field === 'bytes' || field === 'responseBytes') continue
    if (field !== 'priority' && field !== 'tier') return false
  }
  return !Array.isArray(options)
}

/** Whether every object has one of them. */
function isPolluted(): boolean {
  const all: object = Object.prototype
  return 'cost' in all || 'bytes' in all || 'responseBytes' in all || 'priority' in all || 'tier' in all
}

export interface StrikeOptions {
  /** How many strikes it counts for: 1 to 1,000,000. @default 1 */
  readonly weight?: number
  /** Shown in the verdicts of the ban that it starts, if it does; up to 200 characters. @default '' */
  readonly reason?: string
}

export const MOST_WEIGHT = 1_000_000

/** @throws SluiceError `INVALID_POLICY` */
export function checkedStrike(policy: string, options: StrikeOptions): Required<StrikeOptions> {
  const where = `${policy}: strike`
  knownOptions(where, options, ['weight', 'reason'])
  const { weight = 1, reason = '' } = options
  wholeNumber(where, 'weight', weight, 1)
  if (weight > MOST_WEIGHT) invalidPolicy(where, 'weight', `at most ${MOST_WEIGHT}`, weight)
  return { weight, reason: checkReason(policy, reason) }
}
