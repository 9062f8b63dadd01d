import type { Verdict } from '../../verdict/verdict.js'
import type { FairQueue, Turn } from './fair-queue.js'
import type { WaitQueues } from './wait-queue.js'
import {
  expectedWait,
  foreseen,
  longestWait,
  queueOf,
  WaitExceeded,
  type Waiter,
  type WaitOptions,
  whyTooLong,
} from './waiter.js'

/** After this many checks for permits a whole decision follows, as the request may have been blocked meanwhile. */
const MAX_LOOKS = 20
/** Longest sleep in ms by a refusal that others may end: other processes, or the store after an outage. */
const LOOK_EVERY_MS = 1000

/** One request that waits in the queues of a limiter. */
export class Waiting {
  readonly #queues: WaitQueues
  readonly #where: string
  readonly #waiter: Waiter
  readonly #options: WaitOptions
  readonly #deadline: number
  readonly #turn: Turn
  /** The id of its current queue. */
  #id: string
  #hasJoined = false
  /** The last refusal, while it is current. */
  #refusal: Verdict | undefined
  /** The number of changes of the policies that it has followed. */
  #changes: number
  #isWaiting = false
  #hasWaited: ReturnType<NonNullable<Waiter['waits']>>

  /** @param changes the number of changes of the policies before its limits were resolved */
  constructor(queues: WaitQueues, where: string, waiter: Waiter, options: WaitOptions, changes: number) {
    const { maxWaitMs, headStartMs = 0, client, refusal } = options
    const now = queues.timing.now()
    this.#queues = queues
    this.#where = where
    this.#waiter = waiter
    this.#options = options
    this.#deadline = now + maxWaitMs
    this.#turn = { cost: 0, headStartMs, since: now - headStartMs, client, wake: undefined, isDisplaced: false }
    this.#refusal = refusal
    this.#changes = changes
    this.#id = (refusal && queueOf(waiter, refusal)) ?? this.#firstQueue
    this.#turn.cost = this.#unitsIn(this.#id)
  }

  get #firstQueue(): string {
    const { queues } = this.#waiter
    return queues.find((id) => this.#queues.hasAny([id])) ?? (queues[0] as string)
  }

  /** The units that it takes from the limit of a queue. */
  #unitsIn(id: string): number {
    return this.#waiter.units[this.#waiter.queues.indexOf(id)] as number
  }

  get #leftMs(): number {
    return this.#deadline - this.#queues.timing.now()
  }

  /**
   * Waits until admitted. A queueing limit (`leakyBucket` with `queue`) admits at once; the caller then waits for `delayMs`.
   *
   * @throws WaitExceeded as soon as that is foreseeable; the signal's reason when aborted, with nothing charged
   */
  async admission(): Promise<Verdict> {
    const { signal, size = Number.POSITIVE_INFINITY } = this.#options
    const turn = this.#turn
    signal?.throwIfAborted()
    if (!this.#queues.makeRoom(this.#id, size, turn)) {
      throw await this.#noRoom(this.#queues.unitsIn(this.#id) + turn.cost)
    }
    let queue = this.#join(this.#id)
    let isServed = false
    try {
      for (;;) {
        if (turn.isDisplaced) {
          this.#refusal ??= this.#options.refusal
          throw await this.#noRoom(queue.units + turn.cost)
        }
        if (this.#changes !== this.#queues.changes) {
          queue = await this.#follow(queue)
          continue
        }
        const { queues } = this.#waiter
        if (queue.first !== turn || this.#queues.isHeldUp(queues, turn)) {
          await this.#standBehind(queue)
          // Other requests have been admitted since that refusal.
          this.#refusal = undefined
          continue
        }
        let next = queues.find((id) => id !== this.#id && this.#queues.isLedBefore(id, turn))
        if (next === undefined) {
          const pending = this.#queues.begin(queues)
          let verdict: Verdict
          try {
            verdict = this.#refusal ?? (await this.#queues.attempt(this.#waiter, this.#id, queue, turn))
          } finally {
            this.#queues.end(queues, pending)
          }
          this.#refusal = undefined
          if (verdict.allowed) {
            const tooLate = this.#tooLate(verdict)
            if (tooLate) throw await tooLate
            isServed = true
            return verdict
          }
          // A refund during the decision may have made room.
          if (pending.isOutdated) continue
          const waitMs = this.#checkedWait(verdict)
          next = queueOf(this.#waiter, verdict)
          if (next === undefined || next === this.#id) {
            await (waitMs > 0 ? this.#sleep(this.#sleepMs(verdict, waitMs)) : this.#sleepForPermits(queue))
            continue
          }
          this.#refusal = verdict
        }
        this.#queues.leave(this.#id, turn, false)
        queue = this.#join(next)
      }
    } finally {
      this.#queues.leave(this.#id, turn, isServed)
      this.#hasWaited?.(isServed ? 'admitted' : signal?.aborted ? 'left' : 'refused')
    }
  }

  /** Goes on by the limits in force, after a change of the policies. Their queues may be others, and the wait too long. */
  async #follow(queue: FairQueue): Promise<FairQueue> {
    this.#changes = this.#queues.changes
    const { queues } = this.#waiter
    await this.#waiter.resolve()
    this.#refusal = undefined
    // Its limits are the same where they are those of other clients that have changed.
    if (this.#waiter.queues !== queues) this.#hasJoined = true
    // Of several changes, it follows the last one.
    if (this.#turn.isDisplaced || this.#changes !== this.#queues.changes) return queue
    const id = this.#waiter.queues.includes(this.#id) ? this.#id : this.#firstQueue
    if (id === this.#id && this.#unitsIn(id) === this.#turn.cost) {
      this.#queues.stay(id, queue, this.#turn, this.#waiter)
      return queue
    }
    this.#queues.leave(this.#id, this.#turn, false)
    return this.#join(id)
  }

  #join(id: string): FairQueue {
    this.#id = id
    this.#turn.cost = this.#unitsIn(id)
    this.#hasJoined = true
    return this.#queues.join(id, this.#turn, this.#waiter)
  }

  /** Waits behind others, after a check whether it can be admitted in time. */
  async #standBehind(queue: FairQueue): Promise<void> {
    if (!this.#hasJoined) {
      if (this.#leftMs <= 0) throw this.#tooLong(this.#options.refusal)
      await this.#sleep(this.#leftMs)
      return
    }
    this.#hasJoined = false
    const waiter = this.#waiter
    const last = this.#refusal ?? (await waiter.peek())
    if (this.#isHopeless(last)) throw this.#tooLong(last)
    if (longestWait(waiter, last, this.#id, queue.units) <= this.#leftMs) return
    const waitMs = await expectedWait(waiter, last, this.#id, queue.unitsThrough(this.#turn))
    if (waitMs > this.#leftMs) throw this.#tooLong(last, waitMs)
  }

  /** The duration of a refusal in ms; 0 where only permits are missing. */
  #checkedWait(refusal: Verdict): number {
    const waitMs = foreseen(refusal)
    if (this.#isHopeless(refusal) || waitMs > this.#leftMs || this.#leftMs <= 0) throw this.#tooLong(refusal)
    return waitMs
  }

  /** Refunds an admission that comes too late, and resolves to the reason; undefined if it is in time. */
  #tooLate(verdict: Verdict): Promise<unknown> | undefined {
    const { signal } = this.#options
    const leftMs = Math.max(0, this.#leftMs)
    const delayMs = this.#waiter.delayOf(verdict, leftMs)
    if (!signal?.aborted && delayMs <= leftMs) return undefined
    return this.#waiter.refund(verdict).then(() => (signal?.aborted ? signal.reason : this.#tooLong(verdict, delayMs)))
  }

  /**
   * Whether a refusal never ends: an impossible cost, a block for ever, or an outage unless the caller waits for the store. That
   * exceeds even an infinite `maxWait`.
   */
  #isHopeless({ reason, retryAfterMs }: Verdict): boolean {
    return retryAfterMs === undefined || (reason === 'unavailable' && !this.#options.waitsForStore)
  }

  #tooLong(
    refusal: Verdict | undefined,
    waitMs?: number,
    why = whyTooLong(refusal, this.#options.maxWaitMs),
  ): WaitExceeded {
    return new WaitExceeded(`${this.#where}: acquire: ${why}`, waitMs, refusal)
  }

  async #noRoom(units: number): Promise<WaitExceeded> {
    const last = this.#refusal ?? (await this.#waiter.peek())
    const waitMs = await expectedWait(this.#waiter, last, this.#id, units)
    return this.#tooLong(last, waitMs, `${this.#options.size} calls wait already`)
  }

  /** How long it sleeps after a refusal with this wait. Units that others return make room earlier. */
  #sleepMs({ kind }: Verdict, waitMs: number): number {
    const mayEndEarlier = kind === 'unavailable' || this.#waiter.isShared
    return mayEndEarlier ? Math.min(waitMs, LOOK_EVERY_MS) : waitMs
  }

  async #sleep(ms: number, forPermits = false): Promise<void> {
    if (!this.#isWaiting) this.#hasWaited = this.#waiter.waits?.()
    this.#isWaiting = true
    await this.#queues.sleep(this.#turn, ms, this.#options.signal, forPermits)
  }

  /** Waits until permits may have been released. */
  async #sleepForPermits(queue: FairQueue): Promise<void> {
    const { queues, mayHavePermits } = this.#waiter
    const look = this.#queues.begin(queues)
    const isOver = () => look.isOutdated || this.#turn.isDisplaced || queue.first !== this.#turn || this.#leftMs <= 0
    try {
      for (let looks = 0; looks < MAX_LOOKS; looks++) {
        await this.#sleep(Math.max(1, this.#leftMs), true)
        if (isOver() || !mayHavePermits || (await mayHavePermits()) || isOver()) return
      }
    } finally {
      this.#queues.end(queues, look)
    }
  }
}
