import { ageEveryMsOf, checkPriority } from '../policy/priority.js'
import { hasPermits } from '../store/cell-kinds.js'
import { CONSUME, type Op, PEEK } from '../store/store.js'
import { type Duration, waitOrNever } from '../util/duration.js'
import { invalidPolicy, SluiceError } from '../util/errors.js'
import { pause } from '../util/pause.js'
import { knownOptions, wholeNumber } from '../util/validate.js'
import { longestRefusal } from '../verdict/limit-report.js'
import { isBarred, type Verdict } from '../verdict/verdict.js'
import { FairQueue, type Turn } from './fair-queue.js'
import { type AskingTurn, SharedTurns, type WaitingReport } from './shared-turns.js'

export interface AcquireOptions {
  /** Units: whole, 0 or more. @default 1 */
  readonly cost?: number
  /** Longest wait. @default no bound */
  readonly maxWait?: Duration
  /** Ends the wait; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal
  /**
   * The client, where several wait for one key: any non-empty text. Those who wait for the same key are served in turn, by
   * units, however many calls each of them has waiting. Calls without it count as one client. @default first in, first out
   */
  readonly fairBy?: string
  /** The class of this call, any finite number: higher goes first. `reserve` goes by it, too. @default by the policy's `priority`, else 0 */
  readonly priority?: number
  /**
   * Waiting for this long raises a call by one class, so that none starves: one of class 2 counts as if it had been made twice
   * this time earlier. `Infinity`: never, so that a lower class waits for as long as there are calls of a higher one. @default '2s'
   */
  readonly ageEvery?: Duration
  /**
   * Most calls that wait for one key in this process, this one included: whole, 1 or more. One that finds as many rejects with
   * `WAIT_EXCEEDED`. With `fairBy` the newest call of the client that has the most leaves instead, for one of a client that has
   * fewer, unless it is of a higher class. @default 10_000
   */
  readonly size?: number
}

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

const MOST_WAITERS = 10_000

/** A permit is released when its holder is done, which no clock shows, so waiters for permits try this often. */
const POLL_MS = 50
/** After so many looks for permits a whole decision follows, as it may have been blocked meanwhile. */
const MOST_LOOKS = 20
/** How many waiters are woken without a pause. */
const WOKEN_AT_ONCE = 500

/** @throws SluiceError `INVALID_POLICY` */
export function acquireOptions(
  where: string,
  options: AcquireOptions,
): WaitOptions & { readonly priority: number | undefined } {
  knownOptions(`${where}: acquire`, options, ['cost', 'maxWait', 'signal', 'fairBy', 'priority', 'ageEvery', 'size'])
  const { cost = 1, maxWait, signal, fairBy: client, priority, ageEvery, size = MOST_WAITERS } = options
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    invalidPolicy(where, 'signal', 'an AbortSignal', signal)
  }
  if (client !== undefined && (typeof client !== 'string' || client === '')) {
    invalidPolicy(where, 'fairBy', 'a non-empty string', client)
  }
  const maxWaitMs = maxWait === undefined ? Number.POSITIVE_INFINITY : waitOrNever(where, 'maxWait', maxWait)
  if (priority !== undefined) checkPriority(where, priority)
  wholeNumber(where, 'size', size, 1)
  return { cost, maxWaitMs, signal, client, priority, size, ageEveryMs: ageEveryMsOf(where, ageEvery) }
}

/**
 * The waiters of one limiter in this process: one queue per limit and key, in the order of `FairQueue`.
 * A waiter stands in the queue of the limit that refuses it for longest. It asks the store when it is the first of
 * that queue, and no earlier waiter is the first of a queue of one of its other limits. The store admits, so limits
 * stay exact across processes; the order holds within a process.
 *
 * Holds for every order in which the store may reply, time may pass, and others may leave or refund
 * (`test/deep/interleavings/queues.test.ts`): each waiter gets one result, the admitted are charged and no others are, no
 * waiter sleeps while this process knows of room, and a queue is removed with its last waiter.
 */
export class WaitQueues {
  readonly #queues = new Map<string, FairQueue>()
  readonly #shared = new SharedTurns()
  readonly #polling = new Polling()
  /** The decisions under way, by the queues of their limits. */
  readonly #asking = new Map<string, Set<Ask>>()

  /** The number of queues. */
  get size(): number {
    return this.#queues.size
  }

  /** Whether one of these queues has a waiter. */
  hasAny(queues: readonly string[]): boolean {
    return queues.some((id) => this.#queues.has(id))
  }

  /** There may be room after a refund, a release or a reset, for these queues or for all: the first of each asks again. */
  wake(queues?: readonly string[]): void {
    for (const id of queues ?? this.#asking.keys()) {
      for (const ask of this.#asking.get(id) ?? []) ask.isOutdated = true
    }
    for (const id of queues ?? this.#queues.keys()) this.#queues.get(id)?.first?.wake?.()
  }

  /**
   * Waits until admitted. A queueing limit (`leakyBucket` with `queue`) admits at once; the caller waits for `delayMs` then.
   *
   * @throws WaitExceeded as soon as that is foreseen; the signal's reason when aborted, with nothing charged
   */
  async admission(where: string, waiter: Waiter, options: WaitOptions): Promise<Verdict> {
    const { cost, maxWaitMs, signal, headStartMs = 0, client, size = Number.POSITIVE_INFINITY } = options
    const deadline = performance.now() + maxWaitMs
    const left = () => deadline - performance.now()
    const tooLong = (refusal: Verdict | undefined, waitMs?: number, why = whyTooLong(refusal, maxWaitMs)) =>
      new WaitExceeded(`${where}: acquire: ${why}`, waitMs, refusal)
    // What never ends exceeds even an infinite `maxWait`: an impossible cost, a block for ever.
    const isHopeless = ({ reason, retryAfterMs }: Verdict) =>
      retryAfterMs === undefined || (reason === 'unavailable' && !options.waitsForStore)
    signal?.throwIfAborted()

    let { refusal } = options
    let id =
      (refusal && queueOf(waiter, refusal)) ??
      waiter.queues.find((id) => this.#queues.has(id)) ??
      (waiter.queues[0] as string)
    const since = performance.now() - headStartMs
    const turn: Turn = { cost, headStartMs, since, client, wake: undefined, isDisplaced: false }
    const noRoom = async (units: number) => {
      const last = refusal ?? (await waiter.decide(cost, PEEK))
      return tooLong(last, await expectedWait(waiter, last, id, units), `${size} calls wait already`)
    }
    const full = this.#queues.get(id)
    if (full && full.length >= size) {
      const displaced = full.displacedBy(turn)
      if (!displaced) throw await noRoom(full.units + cost)
      this.#displace(full, displaced)
    }
    /** Reports a queue to other processes after a change. */
    const report = (changed: FairQueue) => {
      if (waiter.reportOf) this.#shared.changed(id, changed, waiter.reportOf(waiter.queues.indexOf(id)))
    }
    let queue = this.#join(id, turn)
    report(queue)
    let hasJoined = true
    const moveTo = (other: string) => {
      this.#leave(id, turn, false)
      report(queue)
      id = other
      queue = this.#join(id, turn)
      report(queue)
      hasJoined = true
    }
    let isServed = false
    let hasWaited: ReturnType<NonNullable<Waiter['waits']>>
    let isWaiting = false
    const sleep = async (ms: number, polling?: Polling) => {
      if (!isWaiting) hasWaited = waiter.waits?.()
      isWaiting = true
      await this.#sleep(turn, ms, signal, polling)
    }
    /** Until permits may have been released. */
    const sleepForPermits = async () => {
      const look = this.#begin(waiter.queues)
      const isOver = () => look.isOutdated || turn.isDisplaced || queue.first !== turn || left() <= 0
      try {
        for (let looks = 0; looks < MOST_LOOKS; looks++) {
          await sleep(Math.max(1, left()), this.#polling)
          if (isOver() || !waiter.mayHavePermits || (await waiter.mayHavePermits(cost)) || isOver()) return
        }
      } finally {
        this.#end(waiter.queues, look)
      }
    }
    try {
      for (;;) {
        if (turn.isDisplaced) {
          refusal ??= options.refusal
          throw await noRoom(queue.units + cost)
        }
        if (queue.first !== turn) {
          if (hasJoined) {
            hasJoined = false
            const last = refusal ?? (await waiter.decide(cost, PEEK))
            if (isHopeless(last)) throw tooLong(last)
            if (longestWait(waiter, last, id, queue.units) > left()) {
              const waitMs = await expectedWait(waiter, last, id, queue.unitsThrough(turn))
              if (waitMs > left()) throw tooLong(last, waitMs)
            }
          } else {
            if (left() <= 0) throw tooLong(options.refusal)
            await sleep(left())
          }
          // Others have been admitted since that refusal.
          refusal = undefined
          continue
        }
        const other = waiter.queues.find((queue) => queue !== id && this.#isLedBefore(queue, turn))
        if (other !== undefined) {
          moveTo(other)
          continue
        }
        const ask = this.#begin(waiter.queues)
        let verdict: Verdict
        try {
          verdict = refusal ?? (await this.#ask(waiter, id, queue, turn))
        } finally {
          this.#end(waiter.queues, ask)
        }
        refusal = undefined
        if (verdict.allowed) {
          const leftMs = Math.max(0, left())
          const delayMs = waiter.delayOf(verdict, leftMs)
          if (!signal?.aborted && delayMs <= leftMs) {
            isServed = true
            return verdict
          }
          await waiter.refund(verdict)
          throw signal?.aborted ? signal.reason : tooLong(verdict, delayMs)
        }
        // A refund that came while the store decided may have made room.
        if (ask.isOutdated) continue
        const wait = foreseen(verdict)
        if (isHopeless(verdict) || wait > left() || left() <= 0) throw tooLong(verdict)
        const next = queueOf(waiter, verdict)
        if (next !== undefined && next !== id) {
          refusal = verdict
          moveTo(next)
        } else if (wait > 0) await sleep(wait)
        else await sleepForPermits()
      }
    } finally {
      this.#leave(id, turn, isServed)
      report(queue)
      hasWaited?.(isServed ? 'admitted' : signal?.aborted ? 'left' : 'refused')
    }
  }

  /** Notes that a decision on limits of these queues is under way. */
  #begin(queues: readonly string[]): Ask {
    const ask: Ask = { isOutdated: false }
    for (const id of queues) {
      const asks = this.#asking.get(id)
      if (asks) asks.add(ask)
      else this.#asking.set(id, new Set([ask]))
    }
    return ask
  }

  #end(queues: readonly string[], ask: Ask): void {
    for (const id of queues) {
      const asks = this.#asking.get(id)
      if (asks?.delete(ask) && asks.size === 0) this.#asking.delete(id)
    }
  }

  /** Asks the store for the first of a queue. */
  async #ask(waiter: Waiter, id: string, queue: FairQueue, turn: Turn): Promise<Verdict> {
    const { cost } = turn
    if (!waiter.reportOf || cost === 0) return waiter.decide(cost, cost === 0 ? PEEK : CONSUME)
    const asking = this.#shared.ask(queue, turn)
    const asked = this.#shared.asking(id, asking)
    try {
      const verdict = await waiter.decide(cost, CONSUME, asking, waiter.queues.indexOf(id))
      asked(verdict.kind === 'decided' ? verdict.allowed : undefined)
      return verdict
    } catch (error) {
      asked(undefined)
      throw error
    }
  }

  async #sleep(turn: Turn, ms: number, signal: AbortSignal | undefined, polling?: Polling): Promise<void> {
    await pause(ms, signal, (wake) => {
      turn.wake = wake
      polling?.add(wake)
      return () => {
        turn.wake = undefined
        polling?.delete(wake)
      }
    })
  }

  #isLedBefore(id: string, turn: Turn): boolean {
    const first = this.#queues.get(id)?.first
    return first !== undefined && first.since < turn.since
  }

  #join(id: string, turn: Turn): FairQueue {
    let queue = this.#queues.get(id)
    if (!queue) {
      queue = new FairQueue()
      this.#queues.set(id, queue)
    }
    queue.add(turn)
    return queue
  }

  #displace(queue: FairQueue, turn: Turn): void {
    const wasFirst = queue.first === turn
    queue.remove(turn, false)
    turn.isDisplaced = true
    turn.wake?.()
    if (wasFirst) queue.first?.wake?.()
  }

  #leave(id: string, turn: Turn, isServed: boolean): void {
    const queue = this.#queues.get(id)
    const wasFirst = queue?.first === turn
    if (!queue?.remove(turn, isServed)) return
    if (queue.length === 0) this.#queues.delete(id)
    else if (wasFirst) queue.first?.wake?.()
  }
}

/** Wakes all who wait for permits together, so that a store looks for them together. */
class Polling {
  readonly #wakers = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined

  add(wake: () => void): void {
    this.#wakers.add(wake)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#wake([...this.#wakers])
    }, POLL_MS)
  }

  delete(wake: () => void): void {
    this.#wakers.delete(wake)
    if (this.#wakers.size > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #wake(wakers: readonly (() => void)[]): void {
    for (const wake of wakers.slice(0, WOKEN_AT_ONCE)) if (this.#wakers.has(wake)) wake()
    if (wakers.length > WOKEN_AT_ONCE) setImmediate(() => this.#wake(wakers.slice(WOKEN_AT_ONCE)))
  }
}

/** A decision under way, and whether there may be room since it was asked for. */
interface Ask {
  isOutdated: boolean
}

/** Milliseconds for which a refusal is sure to last; 0 where only permits are missing, which may be released at any time. */
function foreseen(verdict: Verdict): number {
  if (verdict.retryAfterMs === undefined) return Number.POSITIVE_INFINITY
  if (isBarred(verdict)) return verdict.retryAfterMs
  return verdict.limits.reduce(
    (most, { algorithm, retryAfterMs = 0 }) => (hasPermits(algorithm) ? most : Math.max(most, retryAfterMs)),
    0,
  )
}

/** The queue of the limit that refuses for longest; undefined for a block, which no limit causes. */
function queueOf({ queues }: Waiter, { limits }: Verdict): string | undefined {
  const i = longestRefusal(limits)
  return i < 0 ? undefined : queues[i]
}

/** Milliseconds until the last of `units` in a queue would be admitted, if they were asked for one after the other. */
async function expectedWait(waiter: Waiter, { limits }: Verdict, queue: string, units: number): Promise<number> {
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
function longestWait({ queues }: Waiter, { limits }: Verdict, queue: string, units: number): number {
  let most = 0
  for (const [i, { algorithm, limit, windowMs, capacity, retryAfterMs = 0 }] of limits.entries()) {
    if (hasPermits(algorithm) || limit === 0 || units === 0) continue
    const unitsMs = queues[i] === queue ? ((units + capacity) / limit) * windowMs + windowMs : 0
    most = Math.max(most, retryAfterMs + unitsMs)
  }
  return most
}

function whyTooLong(verdict: Verdict | undefined, maxWaitMs: number): string {
  if (verdict?.reason === 'impossible') return 'the cost is larger than a limit ever admits'
  if (verdict?.reason === 'blocked' && verdict.retryAfterMs === undefined) return 'it is blocked for ever'
  return `the wait would exceed ${maxWaitMs} ms`
}
