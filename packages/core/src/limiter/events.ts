import type { BlockEvent, StoreEvents, UnblockEvent } from '../store/events.js'
import type { Identity } from '../store/identity.js'
import type { WarningEvent } from '../util/warnings.js'
import type { DecisionSource } from '../verdict/decision.js'
import type { RefusalReason, Verdict } from '../verdict/verdict.js'

export type DecisionOutcome = 'admitted' | RefusalReason

/** A decision that is final: once for each verdict that `onVerdict` gets, so not for a peek. */
export interface DecisionEvent {
  readonly policy: string
  readonly allowed: boolean
  /** `admitted`, or why it was refused; `left`: the client left while the request waited. */
  readonly outcome: DecisionOutcome
  /** The limit that refuses for longest; undefined where no limit refuses. */
  readonly limit: string | undefined
  readonly source: DecisionSource
  /**
   * Milliseconds, with fractions, from when the store was asked until it had decided; of a request that waited, of its last
   * decision. 0 where a list decided.
   */
  readonly durationMs: number
  /** How much of a limit is in use after it, 0 to 1: of several limits the most. Undefined where no limit was asked. */
  readonly used: number | undefined
  /** Whether it is not enforced: `enforce: { mode: 'report' }`, or a key that `enforce.percent` leaves out. */
  readonly reported: boolean
  /** Has the keys: keep them out of metric labels, and out of logs unless that is allowed. */
  readonly verdict: Verdict
}

/** An admitted request has taken the use of a limit beyond the fraction that was asked for; before this decision it was below. */
export interface NearLimitEvent {
  readonly policy: string
  readonly limit: string
  /** The fraction that was crossed, as `on` was given it. */
  readonly at: number
  /** How much of the limit is in use now, 0 to 1. */
  readonly used: number
  readonly verdict: Verdict
}

/** A strike that counted. */
export interface StrikeEvent {
  readonly policy: string
  readonly identity: Identity
  /** How many it counts for. */
  readonly weight: number
  /** As `strike` or a trap gave it; else ''. */
  readonly reason: string
  /** Whether it counts in this process only, as the store is away. */
  readonly isLocal: boolean
}

/** A ban that has begun. */
export interface BanEvent {
  readonly policy: string
  readonly identity: Identity
  /** Which step of the ladder it is, from 1. */
  readonly rung: number
  /** How many strikes started it. */
  readonly strikes: number
  /** How long it lasts, in ms. */
  readonly forMs: number
  /** Of the strike that started it; '' where there was none. */
  readonly reason: string
  /** Whether it holds in this process only, as the store is away. */
  readonly isLocal: boolean
}

/** A request or an `acquire` has waited in a queue of this process, and waits no more. */
export interface WaitedEvent {
  readonly policy: string
  /** How long, in ms, with fractions. */
  readonly waitedMs: number
  /** `left`: the client has left, or the call was aborted. */
  readonly outcome: 'admitted' | 'refused' | 'left'
}

/** Policies that are data have changed: the next request is decided by them. */
export interface PoliciesReloadedEvent {
  /** Of the source, such as the path of a file. */
  readonly source: string
  /** Of the document in force, and of the one before. */
  readonly version: string
  readonly previous: string
  /** How many policies there are now. */
  readonly policies: number
}

/** The events of `limiter.on()`. */
export interface LimiterEvents {
  readonly decision: DecisionEvent
  /** The decisions by which a request was refused, without those that are only reported or served all the same. */
  readonly refused: DecisionEvent
  readonly 'near-limit': NearLimitEvent
  readonly strike: StrikeEvent
  readonly ban: BanEvent
  readonly block: BlockEvent
  readonly unblock: UnblockEvent
  readonly waited: WaitedEvent
  readonly warning: WarningEvent
}

/** The events of `events.on()`: those of every limiter, store and policies of this process. */
export interface SluiceEvents extends LimiterEvents, StoreEvents {
  readonly 'policies-reloaded': PoliciesReloadedEvent
}

/** Options of `on`. */
export interface ListenOptions {
  /** For `near-limit`: which fraction of a limit, above 0 and up to 1. @default 0.8 */
  readonly at?: number
}

export const LIMITER_EVENTS = [
  'decision',
  'refused',
  'near-limit',
  'strike',
  'ban',
  'block',
  'unblock',
  'waited',
  'warning',
] as const
