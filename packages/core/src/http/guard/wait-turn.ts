import type { BookedWait } from '../../limiter/limiter.js'
import type { DecisionOptions } from '../../limiter/options.js'
import { WaitExceeded } from '../../limiter/wait-queue.js'
import type { PolicyChoice } from '../../policy/policy.js'
import { type HttpContext, isOver } from '../../request/context.js'
import { isBarred, Verdict } from '../../verdict/verdict.js'
import type { RequestLimiter } from '../identity/request-limiter.js'
import type { TurnOptions, TurnResult } from '../responders/turn.js'
import { listenTo } from '../response/shared-listener.js'

/** Why a wait ends early. */
export const LEFT = new Error('the client has left')

/** Queues a refused request until it is admitted, the wait is too long, or the client leaves. */
export async function waitTurn<Request>(
  limiter: RequestLimiter<Request>,
  context: HttpContext<Request>,
  cost: number,
  refusal: Verdict,
  options: TurnOptions,
  from: DecisionOptions | undefined,
  choice: PolicyChoice<Request> | undefined,
): Promise<TurnResult> {
  // No turn comes for a client that a list denies.
  if (refusal.reason === 'denied') return refusal
  const leaving = new AbortController()
  if (isOver(context.response)) return 'gone'
  const ignoreClose = listenTo(context.response, 'close', () => leaving.abort(LEFT))
  try {
    const { signal } = leaving
    // No limit refused it, only requests before it: it may be admitted now.
    const last = refusal.limits.every(({ allowed }) => allowed) && !isBarred(refusal) ? undefined : refusal
    return await limiter.waitTurn(context, { ...options, cost, signal, refusal: last }, from, choice)
  } catch (error) {
    if (leaving.signal.aborted) return 'gone'
    if (!(error instanceof WaitExceeded)) throw error
    return Verdict.marked(error.refusal ?? refusal, { waitMs: error.waitMs ?? 0 })
  } finally {
    ignoreClose()
  }
}

/** Waits for a turn that a queueing limit has given. Rejects with `LEFT` when the client leaves. */
export function waitBooked<Request>(
  limiter: RequestLimiter<Request>,
  context: HttpContext<Request>,
  verdict: Verdict,
  clientOf: () => Promise<string | undefined>,
): Promise<void> {
  // A client may leave while it is found out which one it is.
  return whileThere(context, async (signal) => limiter.waitBooked(verdict, await clientOf(), signal))
}

/**
 * The same for a request that a responder has queued: it waits no longer than that allows, however many come before it. Resolves to
 * what has become of it; nothing is charged where it was not admitted.
 */
export async function waitBookedInTime<Request>(
  limiter: RequestLimiter<Request>,
  context: HttpContext<Request>,
  verdict: Verdict,
  refusal: Verdict,
  wait: Omit<BookedWait, 'signal'>,
): Promise<TurnResult> {
  try {
    await whileThere(context, (signal) => limiter.waitBookedWithin(verdict, { ...wait, signal }))
    return verdict
  } catch (error) {
    await limiter.refundVerdict(verdict)
    if (error === LEFT) return 'gone'
    if (!(error instanceof WaitExceeded)) throw error
    return Verdict.marked(refusal, { waitMs: 0 })
  }
}

/** `signal` is aborted with `LEFT` when the client leaves. */
async function whileThere<Request>(
  { response }: HttpContext<Request>,
  wait: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  if (isOver(response)) throw LEFT
  const leaving = new AbortController()
  const ignoreClose = listenTo(response, 'close', () => leaving.abort(LEFT))
  try {
    await wait(leaving.signal)
  } finally {
    ignoreClose()
  }
}
