import type { DecisionOptions, Limiter } from '../../limiter/limiter.js'
import { WaitExceeded } from '../../limiter/wait-queue.js'
import { type HttpContext, isOver } from '../../request/context.js'
import { Verdict } from '../../verdict/verdict.js'

export interface TurnOptions {
  /** Longest wait, in ms; may be infinite. */
  readonly maxWaitMs: number
  /** Goes before those that came up to this many ms earlier with none. @default 0 */
  readonly headStartMs?: number
  /** Most that may wait in the line, this one included. @default no bound */
  readonly size?: number
}

/** `gone` when the client has left. Else admitted and charged, or refused for longer than the wait may take. */
export type LinedUp = Verdict | 'gone'

const LEFT = new Error('the client has left')

/** Waits in line with a refused request until it is admitted, the wait is too long, or the client leaves. */
export async function lineUp<Request>(
  limiter: Limiter<Request>,
  context: HttpContext<Request>,
  cost: number,
  refusal: Verdict,
  options: TurnOptions,
  from: DecisionOptions | undefined,
): Promise<LinedUp> {
  const leaving = new AbortController()
  const leave = () => leaving.abort(LEFT)
  if (isOver(context.response)) return 'gone'
  context.response.on('close', leave)
  try {
    const { signal } = leaving
    // A turn that waited for others is no refusal to go by: it may be admitted now.
    const last = refusal.limits.every(({ allowed }) => allowed) && !refusal.block ? undefined : refusal
    return await limiter.waitTurn(context.request, context, { ...options, cost, signal, refusal: last }, from)
  } catch (error) {
    if (leaving.signal.aborted) return 'gone'
    if (!(error instanceof WaitExceeded)) throw error
    return Verdict.marked(error.refusal ?? refusal, { waitMs: error.waitMs ?? 0 })
  } finally {
    context.response.removeListener('close', leave)
  }
}
