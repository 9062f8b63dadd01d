import { NOT_LIMITED } from '../../http/guard/decider.js'
import type { GuardedRequest } from '../../http/guard/guarded-request.js'
import { type Outcome, SKIPPED } from '../../http/guard/outcome.js'
import type { TurnOptions, TurnResult } from '../../http/responders/responder.js'
import { listenTo } from '../../http/response/shared-listener.js'
import { type HttpContext, isOver } from '../../request/context.js'
import { DECISION, isBarred, marked, type Verdict } from '../../verdict/verdict.js'
import type { BookedWait } from './booked-turns.js'
import { type LimiterQueues, QUEUES } from './limiter-queues.js'
import { WAIT, WaitExceeded } from './waiter.js'

/** The reason of a wait that ends early. */
export const LEFT = new Error('the client has left')

/**
 * Queues a refused request until it is admitted, the wait is too long, or the client leaves. Resolves to the request's outcome
 * where policies that came into force meanwhile do not limit it, or cannot count it.
 */
export async function waitTurn<Request>(
  request: GuardedRequest<Request>,
  refusal: Verdict,
  options: TurnOptions,
): Promise<TurnResult | Outcome> {
  const { guard, context } = request
  // No turn comes for a client that a list denies.
  if (refusal.reason === 'denied') return refusal
  // No limit refused it, only earlier requests: it may be admitted now.
  const last = refusal.limits.every(({ allowed }) => allowed) && !isBarred(refusal) ? undefined : refusal
  try {
    return await whileThere(context, (signal) =>
      guard.decider.waitTurn(request, { ...WAIT, ...options, signal, refusal: last }),
    )
  } catch (error) {
    if (error === LEFT) return 'gone'
    if (error === NOT_LIMITED) return SKIPPED
    if (!(error instanceof WaitExceeded)) return guard.handleInvalid(error, request.units, context)
    return marked(error.refusal ?? refusal, { waitMs: error.waitMs ?? 0 })
  }
}

/**
 * Waits for a turn that a queueing limit has booked, as a request that a responder has queued: no longer than that limit allows,
 * however many requests come before it. Resolves to the result; nothing is charged where the request was not admitted.
 */
export async function waitBookedInTime<Request>(
  { guard, context }: GuardedRequest<Request>,
  verdict: Verdict,
  refusal: Verdict,
  wait: Omit<BookedWait, 'signal'>,
): Promise<TurnResult> {
  const { charges, parts } = guard.engine
  const { booked } = parts.get(QUEUES) as LimiterQueues<Request>
  try {
    await whileThere(context, (signal) => booked.waitWithin(guard.where, verdict, { ...wait, signal }))
    return verdict
  } catch (error) {
    await charges.refund(verdict[DECISION])
    if (error === LEFT) return 'gone'
    if (!(error instanceof WaitExceeded)) throw error
    return marked(refusal, { waitMs: 0 })
  }
}

/** `signal` is aborted when the client leaves. Then the function rejects with `LEFT`, whatever the wait ends with. */
export async function whileThere<Request, T>(
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
