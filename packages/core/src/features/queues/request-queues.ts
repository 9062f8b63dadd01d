import { requestCost } from '../../http/charging/cost.js'
import { identitiesOf } from '../../http/guard/decider.js'
import type { GuardBasis, InForce, PassingRequest, Waits } from '../../http/guard/guard-feature.js'
import { isOutcome, type Outcome, SKIPPED } from '../../http/guard/outcome.js'
import type { TurnOptions, TurnResult } from '../../http/responders/responder.js'
import { listenTo } from '../../http/response/shared-listener.js'
import { type HttpContext, isOver } from '../../request/context.js'
import { propertyOf } from '../../util/property-of.js'
import { whenKnown } from '../../util/when-known.js'
import { DECISION, isBarred, marked, type Verdict } from '../../verdict/verdict.js'
import type { BookedWait } from './booked-turns.js'
import { type LimiterQueues, QUEUES } from './limiter-queues.js'
import type { Resolver } from './request-waiter.js'
import { WAIT, WaitExceeded, type WaitOptions } from './waiter.js'

/** The reason of a wait that ends because the policies in force do not limit the request. */
export const NOT_LIMITED = new Error('the request is not limited')

/** The reason of a wait that ends early. */
const LEFT = new Error('the client has left')

/** How the requests of a guard wait for room, and for their turn. */
export class RequestQueues<Request> implements Waits<Request> {
  readonly #by: GuardBasis<Request>
  readonly #queues: LimiterQueues<Request>

  constructor(by: GuardBasis<Request>) {
    this.#by = by
    this.#queues = by.engine.parts.get(QUEUES) as LimiterQueues<Request>
  }

  readonly areBefore: Waits<Request>['areBefore'] = ({ plan, identities }, cost) =>
    cost !== 0 && this.#queues.areAny && this.#queues.hasWaitersFor(plan, identities)

  readonly inQueue: Waits<Request>['inQueue'] = async (request, refusal, options) => {
    const { timing } = this.#by.engine
    const until = timing.now() + options.maxWaitMs
    const turn = await this.#admission(request, refusal, options)
    if (turn === 'gone' || isOutcome(turn) || !turn.allowed) return turn
    request.holdCharges(turn)
    const wait = { client: propertyOf(options, 'client'), maxWaitMs: until - timing.now() }
    return turn.delayMs > 0 ? this.#bookedInTime(request.context, turn, refusal, wait) : turn
  }

  readonly forTurn: Waits<Request>['forTurn'] = async (context, verdict) => {
    const { engine, responders } = this.#by
    try {
      // A client may leave while it is being identified.
      await whileThere(context, async (signal) =>
        this.#queues.booked.wait(verdict, await responders.clientOf(context, verdict), signal),
      )
      return true
    } catch (error) {
      await engine.charges.refund(verdict[DECISION])
      if (error !== LEFT) throw error
      return false
    }
  }

  /**
   * Queues a refused request until it is admitted, the wait is too long, or the client leaves. Resolves to the request's outcome
   * where policies that came into force meanwhile do not limit it, or cannot count it.
   */
  async #admission(
    request: PassingRequest<Request>,
    refusal: Verdict,
    options: TurnOptions,
  ): Promise<TurnResult | Outcome> {
    const { context } = request
    // No turn comes for a client that a list denies.
    if (refusal.reason === 'denied') return refusal
    // No limit refused it, only earlier requests: it may be admitted now.
    const last = refusal.limits.every(({ allowed }) => allowed) && !isBarred(refusal) ? undefined : refusal
    try {
      return await whileThere(context, (signal) =>
        this.#waitTurn(request, { ...WAIT, ...options, signal, refusal: last }),
      )
    } catch (error) {
      if (error === LEFT) return 'gone'
      if (error === NOT_LIMITED) return SKIPPED
      if (!(error instanceof WaitExceeded)) return this.#by.handleInvalid(error, request.units, context)
      return marked(error.refusal ?? refusal, { waitMs: error.waitMs ?? 0 })
    }
  }

  /**
   * Waits for a turn that a queueing limit has booked, as a request that a responder has queued: no longer than that limit allows,
   * however many requests come before it. Resolves to the result; nothing is charged where the request was not admitted.
   */
  async #bookedInTime(
    context: HttpContext<Request>,
    verdict: Verdict,
    refusal: Verdict,
    wait: Omit<BookedWait, 'signal'>,
  ): Promise<TurnResult> {
    const { where, engine } = this.#by
    try {
      await whileThere(context, (signal) => this.#queues.booked.waitWithin(where, verdict, { ...wait, signal }))
      return verdict
    } catch (error) {
      await engine.charges.refund(verdict[DECISION])
      if (error === LEFT) return 'gone'
      if (!(error instanceof WaitExceeded)) throw error
      return marked(refusal, { waitMs: 0 })
    }
  }

  /** Waits in the queue of the request's key until admitted, by the limits in force at its turn. */
  async #waitTurn(waiting: PassingRequest<Request>, wait: Omit<WaitOptions, 'cost'>): Promise<Verdict> {
    const { engine, anonymous, optionsFor } = this.#by
    const { context, inForce, choice = engine.policy } = waiting
    const { request } = context
    let last = await waitingBy({ choice, anonymous }, waiting)
    const resolveLast = () => {
      const { policy, identities, cost } = last
      return whenKnown(policy.resolve(request, context, identities), (known) => ({ ...known, cost }))
    }
    const resolve: Resolver<Request> = () => {
      if (!inForce) return resolveLast()
      return whenKnown(inForce(), (now) => {
        if (!now || now.choice === last.choice) return resolveLast()
        return follow(now, waiting).then((known) => {
          last = known
          return resolveLast()
        })
      })
    }
    return this.#queues.waitTurn(resolve, { ...wait, cost: last.cost }, optionsFor(context))
  }
}

/** Counts a waiting request by policies that have come into force. Rejects with `NOT_LIMITED` where one of their lists decides on it. */
async function follow<Request>(now: InForce<Request>, waiting: PassingRequest<Request>) {
  const { context } = waiting
  if (now.onlyReport || (await isDecidedEarly(now, context))) throw NOT_LIMITED
  waiting.units = typeof now.cost === 'number' ? now.cost : await now.cost(context.request, context)
  const known = await waitingBy(now, waiting)
  waiting.holder = now.holder
  return known
}

async function isDecidedEarly<Request>(
  { holder: { early } }: InForce<Request>,
  context: HttpContext<Request>,
): Promise<boolean> {
  await early?.pending
  return early?.match(context.request, context) !== undefined
}

/** A request that waits by some policies. */
async function waitingBy<Request>(
  { choice, anonymous }: Pick<InForce<Request>, 'choice' | 'anonymous'>,
  { context, units }: PassingRequest<Request>,
) {
  const policy = await choice.of(context.request, context)
  const identities = await identitiesOf(policy, context, anonymous)
  if (!identities) throw NOT_LIMITED
  return { choice, policy, identities, cost: requestCost(choice, units) }
}

/** `signal` is aborted when the client leaves. Then the function rejects with `LEFT`, whatever the wait ends with. */
async function whileThere<Request, T>(
  { response }: HttpContext<Request>,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (isOver(response)) throw LEFT
  const leaving = new AbortController()
  const ignoreClose = listenTo(response, 'close', () => leaving.abort(LEFT))
  try {
    return await wait(leaving.signal)
  } catch (error) {
    throw leaving.signal.aborted ? LEFT : error
  } finally {
    ignoreClose()
  }
}
