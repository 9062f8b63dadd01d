import type { EarlyDecisions } from '../../limiter/early-decisions.js'
import type { Engine } from '../../limiter/engine.js'
import type { DecisionOptions } from '../../limiter/options.js'
import type { Cost } from '../../policy/costs.js'
import type { KnownRequest } from '../../policy/known-request.js'
import type { PolicyChoice, Resolved } from '../../policy/policy.js'
import type { CostFunction } from '../../policy/request-cost.js'
import type { HttpContext } from '../../request/context.js'
import type { LimiterWarning, Warnings } from '../../util/warnings.js'
import type { MaybePromise } from '../../util/when-known.js'
import type { Verdict } from '../../verdict/verdict.js'
import type { PermitHolder } from '../charging/permit-holder.js'
import type { AnonymousRequests } from '../identity/anonymous.js'
import type { Responders } from '../responders/choice.js'
import type { Ending, TurnOptions, TurnResult } from '../responders/responder.js'
import type { HandleInvalid } from './invalid.js'
import type { Outcome } from './outcome.js'

/** A feature as guards see it, and so `rateLimit`. Its `LimiterFeature` is apart, as programs without HTTP do without this. */
export interface GuardFeature {
  /** The names of its options of a guard, beside those of a policy. */
  readonly guardOptions?: readonly string[]
  /** Whether these options need current counts, and no cached refusals. @default false */
  readonly needsFresh?: (options: object) => boolean
  /** The responders of refusals that no limit makes, unchecked. Undefined for those of the limiter. */
  readonly responders?: (options: object) => RespondersByReason
  /**
   * Adds itself to a guard. Undefined if it has nothing to do with the requests of this guard.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  readonly guard?: <Request>(basis: GuardBasis<Request>, options: object) => GuardPart<Request> | undefined
}

/** Responders of refusals by a list or a ban, unchecked. */
export interface RespondersByReason {
  readonly denied?: unknown
  readonly banned?: unknown
}

/** A guard that features add themselves to. */
export interface GuardBasis<Request> {
  readonly where: string
  readonly engine: Engine<Request>
  readonly responders: Responders<Request>
  readonly warnings: Warnings<LimiterWarning>
  readonly anonymous: AnonymousRequests<Request> | undefined
  readonly handleInvalid: HandleInvalid<Request>
  /** Whether each refusal is final: none is decided again, and none only reported. */
  readonly isFinal: boolean
  /** The options of a request's decision, beside its cost. */
  readonly optionsFor: (context: HttpContext<Request>) => DecisionOptions
  /** Called with each response that is cut. */
  readonly whenCut: (context: HttpContext<Request>, refusal: Verdict) => void
}

/** A step of a guard. One that returns an outcome is the last. */
export type Step<Request> = (request: PassingRequest<Request>) => MaybePromise<Outcome | undefined>

/**
 * The part of a feature in a guard. The steps of all features are in the order of their list, within each of
 * three places: before the cost of a request is known, before the decision, and after it.
 */
export interface GuardPart<Request> {
  readonly first?: readonly Step<Request>[]
  readonly before?: readonly Step<Request>[]
  readonly after?: readonly Step<Request>[]
  /**
   * Whether it leaves the decision of the store on a request as it is, where no refused request waits. A simulation skips the steps
   * of such requests. @default never
   */
  readonly onlyDecides?: (context: HttpContext<Request>) => boolean
  /** What has to be known of a request besides, so that it is known whether the feature refuses it. */
  readonly needsOf?: (known: KnownRequest) => readonly string[]
  /** The bytes of a body above which it refuses an admitted request. Undefined without a bound. */
  readonly maxBody?: number
  /** Changes the options of a request's decision. */
  readonly optionsFor?: (context: HttpContext<Request>) => Partial<DecisionOptions> | undefined
  /** Decides before the limits in calls of the limiter; for requests, a step does. Of several features, the first one counts. */
  readonly early?: EarlyDecisions<Request>
  /** How refused requests wait, and those whose turn is booked. Of several features, the first one counts. */
  readonly waits?: Waits<Request>
  /** Called with a request that is admitted for good, and whose charge stays until its outcome is known. */
  readonly charged?: (context: HttpContext<Request>, verdict: Verdict) => void
  /** Called with a request that proceeds. */
  readonly proceeds?: (context: HttpContext<Request>, verdict: Verdict) => void
  /** Called with a request that is refused after it has waited. A verdict of a block or ban replaces that of the request. */
  readonly refusedAfterWait?: (context: HttpContext<Request>, refusal: Verdict) => Promise<Verdict> | undefined
  /** Called with a response that its handler is about to make. */
  readonly serves?: (context: HttpContext<Request>, verdict: Verdict) => void
  /** Called with a response that is cut. */
  readonly cut?: (context: HttpContext<Request>, refusal: Verdict) => void
}

/** A request within a guard, as features see it. */
export interface PassingRequest<Request> {
  readonly context: HttpContext<Request>
  verdict: Verdict | undefined
  /** The ending, once that is known: then only the outcome is to be made. */
  ending: Ending | undefined
  /** Whether the verdict is enforced: the same for every verdict of one key. */
  isEnforced: boolean
  /** Its cost, unchecked. */
  units: unknown
  /** Whether the store that decided may hold charges of other processes. */
  readonly isShared: boolean
  /** The limits of this request, where their numbers differ from those of the guard. */
  readonly choice: PolicyChoice<Request> | undefined
  /** Undefined if its policies stay. */
  readonly inForce: FindInForce<Request> | undefined
  /** Those of the guard, or of the policies that have come into force while it waited. */
  holder: HoldsCharges<Request>
  /** Applies a verdict from before the limits. */
  decideEarly(verdict: Verdict): void
  decideAgain(): MaybePromise<Verdict | undefined>
  /** Holds the request's permits from now on, and corrects its charge when its outcome is known. */
  holdCharges(verdict: Verdict): void
  /** The client left before its request was admitted, or before its turn came. The request was not refused, and holds no charge. */
  leave(verdict: Verdict): void
}

/** How requests of a guard wait. */
export interface Waits<Request> {
  /** Whether earlier requests come first, so that a request may not be charged yet. */
  readonly areBefore: (resolved: Resolved<Request>, cost: Cost) => boolean
  /** Queues a refused request. Resolves to an outcome where its policies have stopped limiting it, or cannot count it. */
  readonly inQueue: (
    request: PassingRequest<Request>,
    refusal: Verdict,
    options: TurnOptions,
  ) => Promise<TurnResult | Outcome>
  /** Waits for the turn that a limit has booked. Resolves to whether the client is still there. */
  readonly forTurn: (context: HttpContext<Request>, verdict: Verdict) => Promise<boolean>
}

/** The holder of an admitted request's charges, until its outcome is known. */
export interface HoldsCharges<Request> {
  readonly permits: PermitHolder | undefined
  readonly early: EarlyDecisions<Request> | undefined
  /** Those of the features, as in `GuardPart`. */
  readonly charged: readonly NonNullable<GuardPart<Request>['charged']>[]
  readonly proceeding: readonly NonNullable<GuardPart<Request>['proceeds']>[]
  readonly refusedAfterWait: readonly NonNullable<GuardPart<Request>['refusedAfterWait']>[]
}

/** Policies for a request that waits, and how they count it. */
export interface InForce<Request> {
  readonly choice: PolicyChoice<Request>
  readonly cost: number | CostFunction<Request>
  /** Undefined if a missing key is an error. */
  readonly anonymous: AnonymousRequests<Request> | undefined
  /** Whether they refuse no request. */
  readonly onlyReport: boolean
  readonly holder: HoldsCharges<Request>
}

/**
 * The policies in force of a request that waits, where they may change. Undefined if none has taken the place of its own.
 * Throws or rejects with `NOT_LIMITED` of the queues where they have stopped limiting it.
 */
export type FindInForce<Request> = () => MaybePromise<InForce<Request> | undefined>
