import type { BasicLimiter } from '../../limiter/limiter.js'
import type { Limit } from '../../policy/limits/limit.js'
import type { RawResponse } from '../../request/context.js'
import { arePermits } from '../../store/units.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { isThenable } from '../../util/thenable.js'
import type { Timing } from '../../util/timing.js'
import { PARTS, type Verdict } from '../../verdict/verdict.js'
import { noteHeld } from '../headers/sent-wait.js'

/** Holds the permits that requests of one guard take. */
export interface PermitHolder {
  hold(verdict: Verdict, response: RawResponse): void
}

/** What changes permits. */
export type PermitLimiter = Pick<BasicLimiter<never>, 'release' | 'renew'>

/**
 * Makes the holder for the limits of a limiter that count permits. `concurrency` brings it, as no other limit needs it.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export type HoldPermits = (
  where: string,
  limits: readonly Limit[],
  limiter: PermitLimiter,
  timing: Timing,
  notes: PermitNotes,
) => PermitHolder

/**
 * Where a holder notes what it does. Those of the guard's copy of the core: a limit may be older, where a development server has loaded
 * the core again.
 */
export interface PermitNotes {
  readonly holding: (response: RawResponse, held: HeldPermits) => void
  readonly heldFor: (verdict: Verdict, ms: number) => void
}

/** Whether the result of a handler shows that it is done. If not, it is done when it sends the response. */
export type IsDone = (result: unknown) => boolean | Promise<boolean>

/** The permits that one verdict took for one request. */
export interface HeldPermits {
  readonly verdict: Verdict
  release(): Promise<void>
  /** Takes the handler's result. If the client leaves, that shows when the handler is done. */
  holdUntil(result: PromiseLike<unknown>, isDone: IsDone | undefined): void
}

/** The holder of the permits of a limiter's limits; undefined if none counts permits. */
export function permitsFor<Request>(
  where: string,
  limiter: BasicLimiter<Request>,
  timing: Timing,
): PermitHolder | undefined {
  const limits = limiter.limits.filter(({ unit }) => arePermits(unit))
  const [first] = limits
  return first && (first.holdPermits as HoldPermits)(where, limits, limiter as PermitLimiter, timing, PERMIT_NOTES)
}

const heldBy = new WeakMap<RawResponse, HeldPermits[]>()

/** The notes of this copy. */
export const PERMIT_NOTES: PermitNotes = {
  holding: (response, held) => void getOrInsert(heldBy, response, () => []).push(held),
  heldFor: noteHeld,
}

/**
 * Releases every permit of `concurrency` limits that a request holds. For a handler that has stopped its work because the
 * client has left, or that needs no permit for the rest of it. Takes the raw response. Does nothing where no permit is held.
 * Resolves when the stores have released the permits; while a store is away, they lapse after their `ttl`.
 *
 * @example Express: `releasePermits(res)`, Koa: `releasePermits(ctx.res)`, Fastify: `releasePermits(reply.raw)`
 */
export async function releasePermits(response: RawResponse): Promise<void> {
  await Promise.all((heldBy.get(response) ?? []).map((held) => held.release()))
}

/**
 * Holds the permits of a request until the promise that its handler returned is settled, if the client leaves before
 * the response begins. If `isDone` returns false then, they are held until the handler sends the response.
 * `verdict`: the one that took the permits; without it, all permits of the request.
 */
export function holdPermitsUntil(response: RawResponse, result: unknown, isDone?: IsDone, verdict?: Verdict): void {
  if (!isThenable(result)) return
  for (const held of heldBy.get(response) ?? []) {
    if (verdict === undefined || verdict[PARTS].includes(held.verdict)) held.holdUntil(result, isDone)
  }
}
