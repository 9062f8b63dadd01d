import type { BlockEvent, StoreEvents, UnblockEvent } from '../store/events.js'
import type { Identity } from '../store/identity.js'
import type { WarningEvent } from '../util/warnings.js'
import type { DecisionSource } from '../verdict/decision.js'
import type { RefusalReason } from '../verdict/refusals.js'
import type { Verdict } from '../verdict/verdict.js'

export type DecisionOutcome = 'admitted' | RefusalReason

/** A final decision: one for each verdict that `onVerdict` gets, so not for a peek. */
export interface DecisionEvent {
  readonly policy: string
  readonly allowed: boolean
  /** `admitted`, or the reason of the refusal; `left`: the client left while the request waited. */
  readonly outcome: DecisionOutcome
  /** The limit with the longest refusal; undefined if no limit refuses. */
  readonly limit: string | undefined
  readonly source: DecisionSource
  /**
   * The duration of the store's decision in milliseconds, with fractions. For a request that waited, the duration of its last
   * decision. 0 where a list decided.
   */
  readonly durationMs: number
  /** The used fraction of the fullest limit after it, 0 to 1. Undefined if no limit decided. */
  readonly used: number | undefined
  /** Whether it is not enforced: `enforce: { mode: 'report' }`, or a key outside of `enforce.percent`. */
  readonly reported: boolean
  /** The path of the request, without the query, as the client wrote it. Undefined without HTTP. */
  readonly path: string | undefined
  /** Contains the keys: keep them out of metric labels, and out of logs unless that is allowed. */
  readonly verdict: Verdict
}

/** An admitted request has raised the use of a limit above the requested fraction; before, it was below. */
export interface NearLimitEvent {
  readonly policy: string
  readonly limit: string
  /** The crossed fraction, as given to `on`. */
  readonly at: number
  /** The used fraction of the limit, 0 to 1. */
  readonly used: number
  readonly verdict: Verdict
}

/** A counted strike. */
export interface StrikeEvent {
  readonly policy: string
  readonly identity: Identity
  /** The number of strikes that it counts for. */
  readonly weight: number
  /** The reason that `strike` or a trap gave; else ''. */
  readonly reason: string
  /** Whether it counts only in this process, as the store is away. */
  readonly isLocal: boolean
}

/** A ban that has begun. */
export interface BanEvent {
  readonly policy: string
  readonly identity: Identity
  /** The step of the ladder, from 1. */
  readonly rung: number
  /** The number of strikes that started it. */
  readonly strikes: number
  /** Its duration, in ms. */
  readonly forMs: number
  /** The reason of the strike that started it; '' where there was none. */
  readonly reason: string
  /** Whether it holds only in this process, as the store is away. */
  readonly isLocal: boolean
}

/** A request or an `acquire` has ended its wait in a queue of this process. */
export interface WaitedEvent {
  readonly policy: string
  /** The duration of the wait, in ms, with fractions. */
  readonly waitedMs: number
  /** `left`: the client has left, or the call was aborted. */
  readonly outcome: 'admitted' | 'refused' | 'left'
}

/** A service has responded to a request that waited its turn, or no response came. */
export interface OutboundEvent {
  readonly policy: string
  /**
   * `refused`: by a rate limit. `final`: refused, and no wait helps. `failed`: no response came. `unsent`: its circuit kept it back.
   */
  readonly outcome: 'accepted' | 'refused' | 'final' | 'failed' | 'unsent'
  /** Milliseconds for which the service wants no requests of the same key; 0 if it did not say. */
  readonly holdMs: number
  /** What the service told of its limits. */
  readonly limits: readonly OutboundLimit[]
}

/** A limit as a service tells it. Undefined: not told. */
export interface OutboundLimit {
  /** As the service names it. */
  readonly name: string
  readonly unit: string
  readonly limit: number | undefined
  readonly remaining: number | undefined
  /** Milliseconds until its units are back. */
  readonly resetAfterMs: number | undefined
}

/** Policies that are data have changed, and decide the next request. */
export interface PoliciesReloadedEvent {
  /** The name of the source, such as the path of a file. */
  readonly source: string
  /** The versions of the document in force, and of the one before. */
  readonly version: string
  readonly previous: string
  /** The number of policies in force. */
  readonly policies: number
}

/** The events of `limiter.on()`. */
export interface LimiterEvents {
  readonly decision: DecisionEvent
  /** Decisions that refused a request. Excludes refusals that were only reported, and requests served in spite of them. */
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
  readonly outbound: OutboundEvent
  readonly 'policies-reloaded': PoliciesReloadedEvent
}

/** Options of `on`. */
export interface ListenOptions {
  /** For `near-limit`: the fraction of a limit, above 0 and up to 1. @default 0.8 */
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
