import type { EnforcementOptions } from '../../http/guard/enforcement.js'
import type { AnonymousOption } from '../../http/identity/anonymous.js'
import type { Responder } from '../../http/responders/responder.js'
import type { CostOption } from '../../policy/request-cost.js'
import type { HttpContext } from '../../request/context.js'
import type { MaybePromise } from '../../util/when-known.js'
import type { ListOptions } from '../lists/options.js'
import type { ChargingOptions } from '../outcomes/charging.js'
import type { PolicyOptions } from '../policy-options.js'

/** The options of a limiter that policies define. */
export interface OptionsOfPolicies<Request>
  extends Omit<PolicyOptions<Request>, 'name'>,
    ListOptions<Request>,
    ChargingOptions<Request>,
    EnforcementOptions {
  readonly respond?: Responder<Request>
  readonly anonymous?: AnonymousOption
  readonly cost?: CostOption<Request>
}

/** Policies that apply to one request, as one limiter. One limiter is made of each object, so equal matches are one object. */
export interface MatchedPolicies<Request> {
  /** The limiter's options from the policies: the limits of all, each with the name of its policy. */
  readonly options: OptionsOfPolicies<Request>
  /**
   * The same without the differences for some clients. Where those are only numbers of limits, one limiter decides on both: one
   * limiter per client would take memory and time.
   */
  readonly base: MatchedPolicies<Request> | undefined
  /** The match to decide next, if these policies admit the request. If that refuses it, their charges are refunded. */
  readonly next: MatchedPolicies<Request> | undefined
  /** The match to decide separately, without enforcement. */
  readonly reported: MatchedPolicies<Request> | undefined
}

/** A client that is given by hand, to methods of a limiter: an identity, or a request without its HTTP. */
export type GivenClient = { readonly kind: string; readonly value: unknown } | { readonly request: unknown }

/** Policies that are data, and the selection of those that apply to a request. */
export interface PolicySource<Request> {
  /**
   * Undefined if no policy applies. Called once for each request, before anything is charged, and before each decision on a
   * request that waits, and after its wait. Returns a promise only where it has to wait.
   */
  match(context: HttpContext<Request>): MaybePromise<MatchedPolicies<Request> | undefined>
  /**
   * The policy of this name for a client that is given by hand: with its override, where it has one. Undefined if there is no
   * policy of the name. A promise only where it has to wait. Absent on sources without differences for some clients.
   */
  forClient?(name: string, client: GivenClient): MaybePromise<MatchedPolicies<Request> | undefined>
  /** Each policy in force by its name, for methods such as `peek` and `reset`. The same map until the policies change. */
  readonly byName: ReadonlyMap<string, MatchedPolicies<Request>>
  /**
   * Calls back when the limits of clients may have changed, by other policies or by overrides: requests that wait try again then.
   * Returns a function that ends it. Absent on sources whose limits stay.
   */
  onChange?(listener: () => unknown): () => void
  /** @internal Calls back with each policy of a document before that comes into force: where one throws, the document stays out. */
  onCheck?(check: (matched: MatchedPolicies<Request>) => unknown): void
  /** @internal Makes the guard of a limiter with these policies: `guardByPolicies`. */
  makeGuard?(options: never): unknown
}
