import { hasPermits } from '../store/cell-kinds.js'
import { type Op, PEEK } from '../store/store.js'
import { SluiceError } from '../util/errors.js'
import { longestRefusal } from '../verdict/limit-report.js'
import { isBarred, type Verdict } from '../verdict/verdict.js'
import type { AskingTurn, WaitingReport } from './shared-turns.js'

/** How one request waits. */
export interface WaitOptions {
  /** Units: whole, 0 or more. */
  readonly cost: number
  /** Longest wait, in ms; may be infinite. */
  readonly maxWaitMs: number
  readonly signal?: AbortSignal | undefined
  /** Queues before waiters that came up to this many ms earlier without a head start. @default 0 */
  readonly headStartMs?: number
  /** The head start for each priority of its own, in ms, where `headStartMs` is not given. @default none */
  readonly ageEveryMs?: number
  /** Waiters of one class are served in turn by client; those without one count as one client. */
  readonly client?: string | undefined
  /** Most waiters in the queue, this one included. @default no bound */
  readonly size?: number
  /** Whether to wait during an outage in which nothing can decide; else the wait is over then. @default false */
  readonly waitsForStore?: boolean
  /** The refusal of this same request that made it wait, if it is still current. */
  readonly refusal?: Verdict | undefined
}

/** What the wait queues need to know of a request that waits. */
export interface Waiter {
  /** The queue of each limit, in the order of a verdict's reports. Equal limits of equal keys share a queue. */
  readonly queues: readonly string[]
  /** `turn`: who asks, and in which of the queues, where requests wait for their turn across processes. */
  decide(cost: number, op: Op, turn?: AskingTurn, queue?: number): Verdict | Promise<Verdict>
  /** How a queue, by its number, is reported to other processes; undefined where none needs to know. */
  readonly reportOf?: ((queue: number) => WaitingReport) | undefined
  /** Whether there may be room for permits; undefined where a decision costs as little. Never rejects. */
  readonly mayHavePermits?: ((cost: number) => Promise<boolean>) | undefined
  refund(verdict: Verdict): Promise<unknown>
  /**
   * For how many ms it waits for a turn that a queueing limit has given, which may be exchanged; if it comes within `enoughMs`
   * in any case, at most.
   */
  delayOf(verdict: Verdict, enoughMs: number): number
  /** It has to wait. Returns what to call once it does not any more; undefined without listeners. */
  waits?(): ((outcome: 'admitted' | 'refused' | 'left') => void) | undefined
}

/** The wait would exceed `maxWait`, or did. */
export class WaitExceeded extends SluiceError {
  /** Milliseconds until there would be room if no other request came; undefined if unknown. */
  readonly waitMs: number | undefined
  /** The last refusal, if there was one. */
  readonly refusal: Verdict | undefined

  constructor(message: string, waitMs: number | undefined, refusal: Verdict | undefined) {
    super('WAIT_EXCEEDED', message)
    this.waitMs = waitMs
    this.refusal = refusal
  }
}

/** Milliseconds for which a refusal is sure to last; 0 where only permits are missing, which may be released at any time. */
export function foreseen(verdict: Verdict): number {
  if (verdict.retryAfterMs === undefined) return Number.POSITIVE_INFINITY
  if (isBarred(verdict)) return verdict.retryAfterMs
  return verdict.limits.reduce(
    (most, { algorithm, retryAfterMs = 0 }) => (hasPermits(algorithm) ? most : Math.max(most, retryAfterMs)),
    0,
  )
}

/** The queue of the limit that refuses for longest; undefined for a block, which no limit causes. */
export function queueOf({ queues }: Waiter, { limits }: Verdict): string | undefined {
  const i = longestRefusal(limits)
  return i < 0 ? undefined : queues[i]
}

/** Milliseconds until the last of `units` in a queue would be admitted, if they were asked for one after the other. */
export async function expectedWait(waiter: Waiter, { limits }: Verdict, queue: string, units: number): Promise<number> {
  let most = 0
  for (const [i, { algorithm, limit, windowMs, capacity, retryAfterMs = 0 }] of limits.entries()) {
    if (hasPermits(algorithm) || limit === 0 || units === 0) continue
    if (waiter.queues[i] !== queue) {
      most = Math.max(most, retryAfterMs)
      continue
    }
    // Each `capacity` units take the time in which as many come back; the wait for the rest is by the present state.
    const rounds = Math.floor((units - 1) / capacity)
    const rest = units - rounds * capacity
    const first = await waiter.decide(rest, PEEK)
    most = Math.max(most, (first.limits[i]?.retryAfterMs ?? 0) + Math.ceil((rounds * capacity * windowMs) / limit))
  }
  return most
}

/** More milliseconds than `expectedWait` says, without asking for anything. */
export function longestWait({ queues }: Waiter, { limits }: Verdict, queue: string, units: number): number {
  let most = 0
  for (const [i, { algorithm, limit, windowMs, capacity, retryAfterMs = 0 }] of limits.entries()) {
    if (hasPermits(algorithm) || limit === 0 || units === 0) continue
    const unitsMs = queues[i] === queue ? ((units + capacity) / limit) * windowMs + windowMs : 0
    most = Math.max(most, retryAfterMs + unitsMs)
  }
  return most
}

export function whyTooLong(verdict: Verdict | undefined, maxWaitMs: number): string {
  if (verdict?.reason === 'impossible') return 'the cost is larger than a limit ever admits'
  if (verdict?.reason === 'blocked' && verdict.retryAfterMs === undefined) return 'it is blocked for ever'
  return `the wait would exceed ${maxWaitMs} ms`
}
