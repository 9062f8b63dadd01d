import type { ListOptions } from '../../lists/options.js'
import type { PolicyOptions } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import type { Later } from '../../util/when-known.js'
import type { ChargingOptions } from '../charging/charging.js'
import type { AnonymousOption } from '../identity/anonymous.js'
import type { Responder } from '../responders/responder.js'
import type { EnforcementOptions } from './enforcement.js'

/** What policies say in place of the options of a limiter. */
export interface OptionsOfPolicies<Request>
  extends Omit<PolicyOptions<Request>, 'name'>,
    ListOptions<Request>,
    ChargingOptions<Request>,
    EnforcementOptions {
  readonly respond?: Responder<Request>
  readonly anonymous?: AnonymousOption
  readonly cost?: number | ((request: Request, context: HttpContext<Request>) => number | Promise<number>)
}

/** Policies that apply to one request, as one limiter. A limiter is made of each object once, so equal matches are one object. */
export interface MatchedPolicies<Request> {
  /** What the limiter has of them, beside its own options: the limits of all, each with the name of its policy. */
  readonly options: OptionsOfPolicies<Request>
  /**
   * The same without what is different for some clients. Where that is numbers of limits alone, one limiter decides on both: to
   * make one for each client would take memory and time.
   */
  readonly base?: MatchedPolicies<Request> | undefined
  /** What is decided next, where they admit the request; where that refuses it, what they charged is refunded. */
  readonly next?: MatchedPolicies<Request> | undefined
  /** What is decided apart from them and acted on by nothing. */
  readonly reported?: MatchedPolicies<Request> | undefined
}

/** Policies that are data: which of them apply to a request. */
export interface PolicySource<Request> {
  /**
   * Undefined where none applies. Asked once for each request, before anything is charged. A promise only where something has
   * to be awaited.
   */
  match(context: HttpContext<Request>): Later<MatchedPolicies<Request> | undefined>
  /** Each policy in force by itself, by its name: what is asked and reset by hand. The same map until they change. */
  readonly byName: ReadonlyMap<string, MatchedPolicies<Request>>
}
