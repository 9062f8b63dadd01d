import type { Cell, Plan, StoreRequest, WaitingClass, WaitingTurn } from '../../store/store.js'
import type { ResultReader } from '../scripts/decode.js'
import { keyStart, waitingMarker, waitingSuffix } from '../scripts/keys.js'
import { readKeys, run } from '../scripts/run.js'
import { markWaitingScript, turnsScript } from '../scripts/scripts.generated.js'
import { encodeWaiting, waitingKeys } from '../scripts/turns.js'
import type { RedisBase } from '../slots/base.js'
import type { PlanTexts } from './plan-texts.js'

export interface KnownWaitersOptions extends RedisBase {
  readonly texts: PlanTexts
}

/** After a check found no waiters, decisions skip the check for this long. They may notice a waiter that much later. */
const CHECK_VALID_MS = 50
/** Size from which a table of checked queues is cleared. */
const MAX_CHECKED = 1000
/**
 * Interval of marker checks in a cluster. It is shorter than the time for which a check is valid, so under steady load
 * the marker's state is always known.
 */
const LOOK_EVERY_MS = 0.6 * CHECK_VALID_MS
/** In a cluster, the marker is renewed once less than this share of its time is left. */
const RENEWED_FROM = 0.7

/**
 * This process's knowledge of requests that wait for their turn across processes. A marker exists while any request
 * waits. In a cluster, the marker is on a slot of its own, so scripts cannot check it beside other keys: separate
 * commands set and check it from time to time. Decisions check no records while no request waits. If the marker cannot
 * be read, they check the records.
 */
export class KnownWaiters {
  readonly #options: KnownWaitersOptions
  readonly #marker: string
  /** The queues in which no request waited at their last check, and those in which any did. */
  readonly #unwaited = new CheckedQueues()
  readonly #waited = new CheckedQueues()
  /** When the marker of a cluster is next checked, and until when it is set; by the performance clock. */
  #nextLookAt = 0
  #markedUntil = 0

  constructor(options: KnownWaitersOptions) {
    this.#options = options
    this.#marker = waitingMarker(options.prefix)
  }

  /** The marker of waiters if scripts can check and set it. */
  get markerInScripts(): string | undefined {
    return this.#options.connection.isCluster ? undefined : this.#marker
  }

  /** Whether a decision must check for waiters; not needed shortly after a check that found none. */
  areLookedFor(request: StoreRequest): boolean {
    const { plan, turn } = request
    if (!plan.sharesTurns) return false
    if (this.#options.connection.isCluster) this.#lookForMarker()
    if (turn !== undefined) return true
    return !this.#unwaited.has(this.#marker) && !this.#unwaited.hasAll(this.#recordsOf(request))
  }

  /** Whether requests are known to wait for each of its cells, so that a decision needs their records. */
  areKnownFor(request: StoreRequest): boolean {
    return request.turn !== undefined || this.#waited.hasAll(this.#recordsOf(request))
  }

  /** Notes that a command sent at `sentAt`, by the performance clock, found waiters for its cells. */
  noteWaitersFor(request: StoreRequest, sentAt: number): void {
    this.#unwaited.delete(this.#marker)
    for (const record of this.#recordsOf(request)) {
      this.#unwaited.delete(record)
      this.#waited.add(record, sentAt)
    }
  }

  /** Notes that a waiting request is about to be sent. */
  noteRequest(request: StoreRequest): void {
    if (!request.turn) return
    for (const record of this.#recordsOf(request)) this.#unwaited.delete(record)
    this.#noteWaiting(request.plan)
  }

  /** Reads a decision's report of waiters. Returns for how many ms one of them goes before it; 0 if none does. */
  read(request: StoreRequest, results: ResultReader, sentAt: number): number {
    const { behindMs, areForIt, areAnywhere } = results.nextWaiters()
    if (areForIt) this.noteWaitersFor(request, sentAt)
    else for (const key of areAnywhere ? this.#recordsOf(request) : [this.#marker]) this.#unwaited.add(key, sentAt)
    return behindMs
  }

  /** Reports the requests that wait in this process to other processes. */
  async report(
    plan: Plan,
    identities: readonly string[],
    { process, cell }: Pick<WaitingTurn, 'process' | 'cell'>,
    classes: readonly WaitingClass[],
  ): Promise<void> {
    const { connection, prefix, timeoutMs, slots } = this.#options
    const waited = plan.cells[cell] as Cell
    const identity = identities[waited.identity] as string
    slots.requireServer(identity)
    const key = keyStart(prefix, identity) + waitingSuffix(plan.policy, waited)
    if (classes.length > 0) this.#noteWaiting(plan)
    const encoded = () => encodeWaiting(key, process, plan, classes, this.markerInScripts)
    await run(connection, timeoutMs, turnsScript, encoded)
  }

  /** Makes the waiting requests of this plan visible to other processes. */
  #noteWaiting({ sharesTurns }: Plan): void {
    this.#unwaited.delete(this.#marker)
    if (sharesTurns && this.#options.connection.isCluster) this.#setMarker(sharesTurns.ttlMs)
  }

  /** Checks the marker for later decisions, unless the last check is recent. */
  #lookForMarker(): void {
    const now = performance.now()
    if (now < this.#nextLookAt) return
    this.#nextLookAt = now + LOOK_EVERY_MS
    const { connection, timeoutMs } = this.#options
    const found = ([marker]: readonly unknown[]) => {
      if (marker) this.#unwaited.delete(this.#marker)
      else this.#unwaited.add(this.#marker, now)
    }
    readKeys(connection, timeoutMs, [this.#marker]).then(found, () => {})
  }

  /** Sets the marker, unless it lasts for most of this time anyway. */
  #setMarker(ttlMs: number): void {
    const now = performance.now()
    if (this.#markedUntil - now > RENEWED_FROM * ttlMs) return
    this.#markedUntil = now + ttlMs
    const { connection, timeoutMs } = this.#options
    const encoded = () => ({ keys: [this.#marker], args: [String(ttlMs)] })
    run(connection, timeoutMs, markWaitingScript, encoded).catch(() => {
      this.#markedUntil = 0
    })
  }

  /** The records of waiters, one for each cell. */
  #recordsOf(request: StoreRequest): string[] {
    const { texts, prefix } = this.#options
    return waitingKeys(request, texts.of(request.plan), prefix)
  }
}

/** Queues that had the same state at a recent check, by the keys of their records; the marker of all stands for all. */
class CheckedQueues {
  /** Until when the check is valid, by the performance clock. */
  readonly #until = new Map<string, number>()

  /** Notes what a command found that was sent at `sentAt`, by the performance clock. */
  add(key: string, sentAt: number): void {
    if (this.#until.size > MAX_CHECKED) this.#until.clear()
    this.#until.set(key, sentAt + CHECK_VALID_MS)
  }

  delete(key: string): void {
    this.#until.delete(key)
  }

  has(key: string): boolean {
    const until = this.#until.get(key)
    return until !== undefined && until > performance.now()
  }

  hasAll(keys: readonly string[]): boolean {
    return keys.every((key) => this.has(key))
  }
}
