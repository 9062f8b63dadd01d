import { getOrInsert } from '../../util/get-or-insert.js'
import { pause } from '../../util/pause.js'
import { PROCESS_TIMING, type Timer, type Timing } from '../../util/timing.js'
import type { Verdict } from '../../verdict/verdict.js'
import { FairQueue, type Turn } from './fair-queue.js'
import { SharedTurns } from './shared-turns.js'
import type { Waiter } from './waiter.js'

/** Interval at which waiters for permits try: a permit is released when its holder is done, which no clock shows. */
const POLL_MS = 50
/** The number of waiters that are woken without a pause. */
const WOKEN_AT_ONCE = 500

/** Takes a function to call when other policies have come into force. Returns a function that ends that. */
export type OnChange = (listener: () => void) => () => void

/**
 * The waiters for one policy on a store in this process: one queue per limit and key, in the order of `FairQueue`.
 *
 * A waiter is in the queue of the limit with the longest refusal. It requests a decision when it is the first of that queue, and
 * no earlier waiter is the first of a queue of one of its other limits (see `Waiting`). A change of the policies may give its
 * limits other queues: then it requests none until earlier waiters for its identities have joined theirs. The store admits, so
 * limits stay exact across processes; the order holds within a process.
 *
 * In every order in which the store may reply, time may pass, and others may leave or refund
 * (`test/deep/interleavings/queues.test.ts`):
 *
 * - Each waiter gets one result.
 * - The admitted are charged, and no others.
 * - No waiter sleeps while this process knows of room.
 * - A queue is removed with its last waiter.
 */
export class WaitQueues {
  readonly #queues = new Map<string, FairQueue>()
  readonly #shared = new SharedTurns()
  readonly #polling: Polling
  /** The decisions under way, by the queues of their limits. */
  readonly #pending = new Map<string, Set<PendingDecision>>()
  /** The queue of each turn. */
  readonly #places = new Map<Turn, string>()
  /** The waiters that have not followed the last change of the policies yet, by the identity that they wait for. */
  readonly #following = new Map<string, Following>()
  readonly #sources = new Set<OnChange>()
  /** Each ends the calls of a source, which are wanted as long as there are waiters. */
  #ends: (() => void)[] = []
  #waiters = 0
  #changes = 0
  readonly timing: Timing

  constructor(timing = PROCESS_TIMING) {
    this.timing = timing
    this.#polling = new Polling(timing)
  }

  /** Follows the changes of policies that some of its waiters wait for. */
  follow(source: OnChange): void {
    this.#sources.add(source)
    if (this.#waiters > 0) this.#listen(source)
  }

  #listen(source: OnChange): void {
    this.#ends.push(source(() => this.#changed()))
  }

  /** The number of times that other policies have come into force, as long as there are waiters. */
  get changes(): number {
    return this.#changes
  }

  /** Records that a waiter comes. `leave`: to call when it is gone. `changes`: those until now, which it need not follow. */
  enter(): { readonly leave: () => void; readonly changes: number } {
    if (this.#waiters++ === 0) for (const source of this.#sources) this.#listen(source)
    const leave = () => {
      if (--this.#waiters > 0) return
      for (const end of this.#ends.splice(0)) end()
    }
    return { leave, changes: this.#changes }
  }

  /** All try again, as the limits may have other queues. */
  #changed(): void {
    this.#changes++
    const turns = [...this.#places.keys()].sort((a, b) => a.since - b.since)
    for (const turn of turns) {
      const identity = identityOf(this.#places.get(turn) as string)
      getOrInsert(this.#following, identity, () => ({ turns: new Set(), held: new Set() })).turns.add(turn)
    }
    this.wake()
    for (const turn of turns) turn.wake?.()
  }

  /** A waiter has followed all changes of the policies, or is gone. `id`: its queue at the last change. */
  #followed(id: string, turn: Turn): void {
    const identity = identityOf(id)
    const following = this.#following.get(identity)
    if (!following?.turns.delete(turn)) return
    if (following.turns.size === 0) this.#following.delete(identity)
    for (const held of following.held) held.wake?.()
    following.held.clear()
  }

  /** Whether waiters that may join one of these queues have not followed the last change yet. */
  areFollowing(queues: readonly string[]): boolean {
    return this.#following.size > 0 && queues.some((id) => this.#following.has(identityOf(id)))
  }

  /** Whether one of them came before a turn, which is then woken when it has followed. */
  isHeldUp(queues: readonly string[], turn: Turn): boolean {
    for (const id of this.#following.size > 0 ? queues : []) {
      const following = this.#following.get(identityOf(id))
      // Nearly sorted: an earlier one is among the first.
      for (const { since } of following?.turns ?? []) {
        if (since >= turn.since) continue
        following?.held.add(turn)
        return true
      }
    }
    return false
  }

  /** The number of queues. */
  get size(): number {
    return this.#queues.size
  }

  /** Whether one of these queues has a waiter. */
  hasAny(queues: readonly string[]): boolean {
    return queues.some((id) => this.#queues.has(id))
  }

  /** Takes the news of possible room after a refund, a release or a reset, in these queues or all. The first of each tries again. */
  wake(queues?: readonly string[]): void {
    for (const id of queues ?? this.#pending.keys()) {
      for (const decision of this.#pending.get(id) ?? []) decision.isOutdated = true
    }
    for (const id of queues ?? this.#queues.keys()) this.#queues.get(id)?.first?.wake?.()
  }

  /** Records that a decision on limits of these queues is under way. */
  begin(queues: readonly string[]): PendingDecision {
    const decision: PendingDecision = { isOutdated: false }
    for (const id of queues) getOrInsert(this.#pending, id, () => new Set()).add(decision)
    return decision
  }

  /** Records the end of that decision. */
  end(queues: readonly string[], decision: PendingDecision): void {
    for (const id of queues) {
      const decisions = this.#pending.get(id)
      if (decisions?.delete(decision) && decisions.size === 0) this.#pending.delete(id)
    }
  }

  /** Requests a decision for the first of a queue. */
  async attempt(waiter: Waiter, id: string, queue: FairQueue, turn: Turn): Promise<Verdict> {
    if (!waiter.reportOf || waiter.isPeek) return waiter.attempt()
    const head = this.#shared.headTurn(queue, turn)
    const finish = this.#shared.begin(id, head)
    try {
      const verdict = await waiter.attempt(head, waiter.queues.indexOf(id))
      finish(verdict.kind === 'decided' ? verdict.allowed : undefined)
      return verdict
    } catch (error) {
      finish(undefined)
      throw error
    }
  }

  /** Waits for a turn to be woken, or for `ms`. `forPermits`: all waiters for permits are also woken together, at intervals. */
  async sleep(turn: Turn, ms: number, signal: AbortSignal | undefined, forPermits: boolean): Promise<void> {
    const polling = forPermits ? this.#polling : undefined
    const onWaker = (wake: () => void) => {
      turn.wake = wake
      polling?.add(wake)
      return () => {
        turn.wake = undefined
        polling?.delete(wake)
      }
    }
    await pause(ms, signal, onWaker, this.timing)
  }

  /** Whether the first of a queue came before a turn. */
  isLedBefore(id: string, turn: Turn): boolean {
    const first = this.#queues.get(id)?.first
    return first !== undefined && first.since < turn.since
  }

  join(id: string, turn: Turn, waiter: Waiter): FairQueue {
    const queue = getOrInsert(this.#queues, id, () => new FairQueue())
    queue.add(turn)
    this.#places.set(turn, id)
    this.#share(id, queue, waiter)
    return queue
  }

  /** Records that a waiter has followed a change of the policies, and stays in its queue. */
  stay(id: string, queue: FairQueue, turn: Turn, waiter: Waiter): void {
    this.#share(id, queue, waiter)
    this.#followed(id, turn)
  }

  /** Makes room in a full queue for a turn. Returns whether there is. */
  makeRoom(id: string, size: number, newcomer: Turn): boolean {
    const queue = this.#queues.get(id)
    if (!queue || queue.length < size) return true
    const displaced = queue.displacedBy(newcomer)
    if (displaced) this.#displace(queue, displaced)
    return displaced !== undefined
  }

  /** Units that all waiters in a queue need. */
  unitsIn(id: string): number {
    return this.#queues.get(id)?.units ?? 0
  }

  #displace(queue: FairQueue, turn: Turn): void {
    const wasFirst = queue.first === turn
    queue.remove(turn, false)
    turn.isDisplaced = true
    turn.wake?.()
    if (wasFirst) queue.first?.wake?.()
  }

  leave(id: string, turn: Turn, isServed: boolean): void {
    this.#places.delete(turn)
    this.#remove(id, turn, isServed)
    this.#shared.changed(id)
    this.#followed(id, turn)
  }

  #remove(id: string, turn: Turn, isServed: boolean): void {
    const queue = this.#queues.get(id)
    const wasFirst = queue?.first === turn
    if (!queue?.remove(turn, isServed)) return
    if (queue.length === 0) this.#queues.delete(id)
    else if (wasFirst) queue.first?.wake?.()
  }

  /** Reports a queue of a waiter to other processes, where its limits share turns. */
  #share(id: string, queue: FairQueue, { queues, reportOf }: Waiter): void {
    this.#shared.share(id, queue, reportOf?.(queues.indexOf(id)))
  }
}

/** Wakes all waiters for permits together, so that a store checks for them together. */
class Polling {
  readonly #wakers = new Set<() => void>()
  #timer: Timer | undefined
  readonly #timing: Timing

  constructor(timing: Timing) {
    this.#timing = timing
  }

  add(wake: () => void): void {
    this.#wakers.add(wake)
    this.#timer ??= this.#timing.setTimeout(() => {
      this.#timer = undefined
      this.#wake([...this.#wakers])
    }, POLL_MS)
  }

  delete(wake: () => void): void {
    this.#wakers.delete(wake)
    if (this.#wakers.size > 0) return
    this.#timing.clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #wake(wakers: readonly (() => void)[]): void {
    for (const wake of wakers.slice(0, WOKEN_AT_ONCE)) if (this.#wakers.has(wake)) wake()
    if (wakers.length > WOKEN_AT_ONCE) setImmediate(() => this.#wake(wakers.slice(WOKEN_AT_ONCE)))
  }
}

/** Waiters for one identity after a change of the policies. */
interface Following {
  /** Those that have not followed it yet. */
  readonly turns: Set<Turn>
  /** Those that wait until others have. */
  readonly held: Set<Turn>
}

/** The identity that a queue is for: see `queuesOf`. */
function identityOf(queue: string): string {
  return queue.slice(queue.indexOf('\n') + 1)
}

/** A decision under way, and whether room may have appeared since its request. */
export interface PendingDecision {
  isOutdated: boolean
}
