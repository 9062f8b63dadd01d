import type { RequestBans } from '../../features/bans/request-bans.js'
import type { ListedSubjects } from '../../features/lists/listed-subjects.js'
import { type LimiterQueues, QUEUES, type Resolver } from '../../features/queues/limiter-queues.js'
import type { WaitOptions } from '../../features/queues/waiter.js'
import type { Engine } from '../../limiter/engine.js'
import { type DecisionOptions, NO_OPTIONS } from '../../limiter/options.js'
import type { Cost } from '../../policy/costs.js'
import type { Policy, PolicyChoice, Resolved } from '../../policy/policy.js'
import type { CostFunction } from '../../policy/request-cost.js'
import type { HttpContext } from '../../request/context.js'
import { PEEK } from '../../store/store.js'
import { type MaybePromise, whenKnown } from '../../util/when-known.js'
import { marked, type Verdict } from '../../verdict/verdict.js'
import type { Charging } from '../charging/charging.js'
import { requestCost } from '../charging/cost.js'
import type { Permits } from '../charging/permits.js'
import type { AnonymousRequests } from '../identity/anonymous.js'

const FRESH: DecisionOptions = Object.freeze({ ...NO_OPTIONS, fresh: true })
const UNSTRUCK: DecisionOptions = Object.freeze({ ...NO_OPTIONS, strikes: false })
const FRESH_UNSTRUCK: DecisionOptions = Object.freeze({ ...NO_OPTIONS, fresh: true, strikes: false })

/** The parts of a decider, beside its engine. */
export interface DeciderParts<Request> {
  /** Undefined where a missing key is an error. */
  readonly anonymous: AnonymousRequests<Request> | undefined
  readonly charging: Charging<Request> | undefined
  readonly bans: RequestBans<Request> | undefined
  /** Whether requests wait for a turn. */
  readonly queues: boolean
  /** Whether to bypass the deny cache. */
  readonly fresh: boolean
}

/** What holds the charges of an admitted request until its outcome is known. */
export interface HoldsCharges<Request> {
  readonly permits: Permits | undefined
  readonly charging: Charging<Request> | undefined
  readonly bans: RequestBans<Request> | undefined
}

/** Policies for a request that waits, and how they count it. */
export interface InForce<Request> {
  readonly choice: PolicyChoice<Request>
  readonly cost: number | CostFunction<Request>
  /** As in `DeciderParts`. */
  readonly anonymous: AnonymousRequests<Request> | undefined
  /** Undefined where there are no lists. */
  readonly listed: ListedSubjects<Request> | undefined
  /** Whether they refuse no request. */
  readonly onlyReport: boolean
  readonly holder: HoldsCharges<Request>
}

/**
 * The policies in force of a request that waits, where they may change. Undefined where none has taken the place of its own.
 * Throws or rejects with `NOT_LIMITED` where they no longer limit it.
 */
export type FindInForce<Request> = () => MaybePromise<InForce<Request> | undefined>

/** A request within a guard that waits. */
interface WaitingRequest<Request> {
  readonly context: HttpContext<Request>
  /** As for `decide`. */
  readonly choice: PolicyChoice<Request> | undefined
  /** Undefined where its policies stay. */
  readonly inForce: FindInForce<Request> | undefined
  /** Its cost by the policies that last counted it, unchecked. */
  units: unknown
  /** By the policies that last counted it. */
  holder: HoldsCharges<Request>
}

/** The reason of a wait that ends because the policies in force do not limit the request. */
export const NOT_LIMITED = new Error('the request is not limited')

/** Decides on requests by the policy's identities, with the bytes that they may send, and behind requests that already wait. */
export class Decider<Request> {
  readonly #engine: Engine<Request>
  readonly #by: DeciderParts<Request>
  readonly #countsResponses: boolean

  constructor(engine: Engine<Request>, by: DeciderParts<Request>) {
    this.#engine = engine
    this.#by = by
    this.#countsResponses = engine.policy.limits.some(({ unit }) => unit === 'response-bytes')
  }

  /**
   * Undefined for a request without a key, where such requests are not limited. Returns a promise only where it has to wait.
   *
   * @param choice the request's own policy, where it differs from the limiter's in the numbers of its limits
   */
  decide(
    context: HttpContext<Request>,
    units: unknown,
    choice: PolicyChoice<Request> = this.#engine.policy,
  ): MaybePromise<Verdict | undefined> {
    const options = this.#optionsFor(context)
    const cost = requestCost(choice, units)
    return whenKnown(this.#resolve(context, choice), (resolved) => resolved && this.#decideOn(resolved, cost, options))
  }

  #decideOn(resolved: Resolved<Request>, cost: Cost, options: DecisionOptions): Verdict | Promise<Verdict> {
    const engine = this.#engine
    const queues = this.#by.queues && cost !== 0 ? engine.parts.get(QUEUES) : undefined
    if (!queues?.areAny || !queues.hasWaitersFor(resolved.plan, resolved.identities)) {
      return engine.decide(resolved, cost, options)
    }
    // Waiting requests are first: any room belongs to them.
    return whenKnown(engine.decide(resolved, cost, options, PEEK), behindWaiters)
  }

  /** Waits in the queue of the request's key until admitted, by the limits in force at its turn. */
  async waitTurn(waiting: WaitingRequest<Request>, wait: Omit<WaitOptions, 'cost'>): Promise<Verdict> {
    const { context, inForce, choice = this.#engine.policy } = waiting
    const { request } = context
    const { anonymous } = this.#by
    let last = await this.#waitingBy({ choice, anonymous }, waiting)
    const resolveLast = () => {
      const { policy, identities, cost } = last
      return whenKnown(policy.resolve(request, context, identities), (known) => ({ ...known, cost }))
    }
    const resolve: Resolver<Request> = () => {
      if (!inForce) return resolveLast()
      return whenKnown(inForce(), (now) => {
        if (!now || now.choice === last.choice) return resolveLast()
        return this.#follow(now, waiting).then((known) => {
          last = known
          return resolveLast()
        })
      })
    }
    const queues = this.#engine.parts.get(QUEUES) as LimiterQueues<Request>
    return queues.waitTurn(resolve, { ...wait, cost: last.cost }, this.#optionsFor(context))
  }

  /** Counts a waiting request by policies that have come into force. Rejects with `NOT_LIMITED` where one of their lists decides on it. */
  async #follow(now: InForce<Request>, waiting: WaitingRequest<Request>) {
    const { context } = waiting
    await now.listed?.pending
    if (now.onlyReport || now.listed?.decide(context.request, context)) throw NOT_LIMITED
    waiting.units = typeof now.cost === 'number' ? now.cost : await now.cost(context.request, context)
    const known = await this.#waitingBy(now, waiting)
    waiting.holder = now.holder
    return known
  }

  /** A request that waits by some policies. */
  async #waitingBy(
    { choice, anonymous }: Pick<InForce<Request>, 'choice' | 'anonymous'>,
    { context, units }: WaitingRequest<Request>,
  ) {
    const policy = await choice.of(context.request, context)
    const identities = await identitiesOf(policy, context, anonymous)
    if (!identities) throw NOT_LIMITED
    return { choice, policy, identities, cost: requestCost(choice, units) }
  }

  #resolve(context: HttpContext<Request>, choice: PolicyChoice<Request>): MaybePromise<Resolved<Request> | undefined> {
    const { request } = context
    return whenKnown(choice.of(request, context), (policy) =>
      whenKnown(
        identitiesOf(policy, context, this.#by.anonymous),
        (identities) => identities && policy.resolve(request, context, identities),
      ),
    )
  }

  #optionsFor(context: HttpContext<Request>): DecisionOptions {
    const { charging, bans, fresh } = this.#by
    const bytes = charging?.bytesOf(context)
    const strikes = bans === undefined || bans.strikesAtOnce(context)
    if (this.#countsResponses) {
      // Bytes of the response are charged when they are sent.
      return { ...NO_OPTIONS, bytes, responseBytes: 0, fresh, strikes }
    }
    if (bytes !== undefined) return { ...NO_OPTIONS, bytes, fresh, strikes }
    if (!strikes) return fresh ? FRESH_UNSTRUCK : UNSTRUCK
    return fresh ? FRESH : NO_OPTIONS
  }
}

/** Undefined for a request that is not limited because a key is missing. */
function identitiesOf<Request>(
  policy: Policy<Request>,
  context: HttpContext<Request>,
  anonymous: AnonymousRequests<Request> | undefined,
): MaybePromise<string[] | undefined> {
  return anonymous ? anonymous.identitiesOf(policy, context) : policy.identitiesOf(context.request, context)
}

/** Turns an admission into a wait for the request's turn behind the others. */
function behindWaiters(verdict: Verdict): Verdict {
  return verdict.allowed ? marked(verdict, { waitMs: 1 }) : verdict
}
