import type { Cost } from '../../policy/costs.js'
import { arePermits } from '../../store/units.js'
import { SluiceError } from '../../util/errors.js'
import type { MaybePromise } from '../../util/when-known.js'
import { longestRefusal } from '../../verdict/limit-report.js'
import { isBarred, type Verdict } from '../../verdict/verdict.js'
import type { HeadTurn, WaitingReport } from './shared-turns.js'

/** Options of one request's wait. */
export interface WaitOptions {
  readonly cost: Cost
  /** Maximum wait, in ms; may be infinite. */
  readonly maxWaitMs: number
  readonly signal: AbortSignal | undefined
  /** The waiter precedes those that came up to this many ms earlier without a head start. @default 0 */
  readonly headStartMs: number | undefined
  /** The head start in ms for each unit of the waiter's priority, where `headStartMs` is not given. @default none */
  readonly ageEveryMs: number | undefined
  /** Waiters of one class are served in turn by client; those without one count as one client. */
  readonly client: string | undefined
  /** Maximum of waiters in the queue, this one included. @default no bound */
  readonly size: number | undefined
  /** Whether to wait during an outage in which nothing can decide; otherwise that ends the wait. @default false */
  readonly waitsForStore: boolean | undefined
  /** The refusal of this request that made it wait, if it is still current. */
  readonly refusal: Verdict | undefined
  /** Called at its start if it is part of a longer wait, which is observed in its place. */
  readonly onStart?: (() => void) | undefined
}

/** The options of a wait that is not given any. */
export const WAIT = {
  signal: undefined,
  headStartMs: undefined,
  ageEveryMs: undefined,
  client: undefined,
  size: undefined,
  waitsForStore: undefined,
  refusal: undefined,
} as const

/**
 * The functions and data of a waiting request that the wait queues need. The data are those of the limits that were in force at
 * the last `resolve`, `attempt` or `peek`.
 */
export interface Waiter {
  /** The queue of each limit, in the order of a verdict's reports. Equal limits of equal keys share a queue. */
  readonly queues: readonly string[]
  /** The units that the request takes from each of these limits, in its own unit. */
  readonly units: readonly number[]
  /** Whether it takes nothing at all. */
  readonly isPeek: boolean
  /** Whether other processes may make room, which only the store shows. */
  readonly isShared: boolean
  /** Resolves the limits in force. */
  resolve(): MaybePromise<unknown>
  /** `turn` and `queue`: the turn and the number of its queue, where requests wait for their turn across processes. */
  attempt(turn?: HeadTurn, queue?: number): Verdict | Promise<Verdict>
  /** Changes nothing. `units`: how many of the limit of one queue, by its number, in place of the request's cost. */
  peek(queue?: number, units?: number): Verdict | Promise<Verdict>
  /** The report of a queue, by its number, to other processes; undefined if they need none. */
  readonly reportOf: ((queue: number) => WaitingReport) | undefined
  /** Whether there may be room for permits; undefined if a decision costs no more. Never rejects. */
  readonly mayHavePermits: (() => Promise<boolean>) | undefined
  refund(verdict: Verdict): Promise<unknown>
  /**
   * The wait in ms for a turn that a queueing limit has booked, which may be exchanged. The latest possible wait if that is within
   * `enoughMs`.
   */
  delayOf(verdict: Verdict, enoughMs: number): number
  /** Takes the start of the wait. Returns the function to call at its end; undefined without listeners. */
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

/** The time in ms for which a refusal certainly lasts; 0 where only permits are missing, which may be released at any time. */
export function foreseen(verdict: Verdict): number {
  if (verdict.retryAfterMs === undefined) return Number.POSITIVE_INFINITY
  if (isBarred(verdict)) return verdict.retryAfterMs
  return verdict.limits.reduce(
    (longest, { unit, retryAfterMs = 0 }) => (arePermits(unit) ? longest : Math.max(longest, retryAfterMs)),
    0,
  )
}

/** The queue of the limit with the longest refusal; undefined for a block, which no limit causes. */
export function queueOf({ queues }: Waiter, { limits }: Verdict): string | undefined {
  const i = longestRefusal(limits)
  return i < 0 ? undefined : queues[i]
}

/** The time in ms until the last of `units` in a queue would be admitted, if they were requested one after the other. */
export async function expectedWait(waiter: Waiter, { limits }: Verdict, queue: string, units: number): Promise<number> {
  let longest = 0
  for (const [i, { unit, limit, windowMs, capacity, retryAfterMs = 0 }] of limits.entries()) {
    if (arePermits(unit) || limit === 0 || units === 0) continue
    if (waiter.queues[i] !== queue) {
      longest = Math.max(longest, retryAfterMs)
      continue
    }
    // Each `capacity` units take the time in which as many return; the wait for the rest follows from the current state.
    const rounds = Math.floor((units - 1) / capacity)
    const rest = units - rounds * capacity
    const first = await waiter.peek(i, rest)
    longest = Math.max(
      longest,
      (first.limits[i]?.retryAfterMs ?? 0) + Math.ceil((rounds * capacity * windowMs) / limit),
    )
  }
  return longest
}

/** An upper bound of `expectedWait` in ms, without a decision. */
export function longestWait({ queues }: Waiter, { limits }: Verdict, queue: string, units: number): number {
  let longest = 0
  for (const [i, { unit, limit, windowMs, capacity, retryAfterMs = 0 }] of limits.entries()) {
    if (arePermits(unit) || limit === 0 || units === 0) continue
    const unitsMs = queues[i] === queue ? ((units + capacity) / limit) * windowMs + windowMs : 0
    longest = Math.max(longest, retryAfterMs + unitsMs)
  }
  return longest
}

export function whyTooLong(verdict: Verdict | undefined, maxWaitMs: number): string {
  if (verdict?.reason === 'impossible') return 'the cost is larger than a limit ever admits'
  if (verdict?.reason === 'blocked' && verdict.retryAfterMs === undefined) return 'it is blocked for ever'
  return `the wait would exceed ${maxWaitMs} ms`
}
