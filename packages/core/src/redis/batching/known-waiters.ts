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

/** How long after none was seen to wait decisions do not look again: they may see a waiter as much later. */
const ASSUME_UNWAITED_MS = 50
/** Queues that are over go when there are so many. */
const MAX_UNWAITED = 1000
/** In a cluster the marker is looked for so often: before what was seen is out of date, so that under a steady load it is always known. */
const LOOK_EVERY_MS = 0.6 * ASSUME_UNWAITED_MS
/** In a cluster the marker is set again once less than this share of its time is left. */
const RENEWED_FROM = 0.7

/**
 * What is known of requests that wait for their turn across processes. While any waits, there is a marker. In a cluster no script
 * can look for it beside other keys, as it is on a slot of its own. So commands of their own set it and look for it, now and
 * then, and decisions look for no record while none waits. Where it cannot be asked for, they do.
 */
export class KnownWaiters {
  readonly #options: KnownWaitersOptions
  readonly #marker: string
  readonly #unwaited = new UnwaitedQueues()
  /** When the marker of a cluster is looked for again, and until when it is set: by the performance clock. */
  #nextLookAt = 0
  #markedUntil = 0

  constructor(options: KnownWaitersOptions) {
    this.#options = options
    this.#marker = waitingMarker(options.prefix)
  }

  /** The marker of waiters where scripts can look for it and set it. */
  get markerInScripts(): string | undefined {
    return this.#options.connection.isCluster ? undefined : this.#marker
  }

  /** Whether a decision has to look for waiters: not where none was found a moment ago. */
  areLookedFor(request: StoreRequest): boolean {
    const { plan, turn } = request
    if (!plan.sharesTurns) return false
    if (this.#options.connection.isCluster) this.#lookForMarker()
    if (turn !== undefined) return true
    return !this.#unwaited.has(this.#marker) && !this.#unwaited.hasAll(this.#recordsOf(request))
  }

  /** A request that waits is about to ask. */
  noteAsking(request: StoreRequest): void {
    if (!request.turn) return
    for (const record of this.#recordsOf(request)) this.#unwaited.delete(record)
    this.#noteWaiting(request.plan)
  }

  /** Reads what a decision has found of waiters. Returns for how long it is behind one of them. */
  read(request: StoreRequest, results: ResultReader, sentAt: number): number {
    const { behindMs, areForIt, areAnywhere } = results.nextWaiters()
    if (areForIt) for (const key of [this.#marker, ...this.#recordsOf(request)]) this.#unwaited.delete(key)
    else for (const key of areAnywhere ? this.#recordsOf(request) : [this.#marker]) this.#unwaited.add(key, sentAt)
    return behindMs
  }

  /** Tells other processes which requests wait for a permit in this one. */
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

  /** Requests of this plan wait, which others are to see. */
  #noteWaiting({ sharesTurns }: Plan): void {
    this.#unwaited.delete(this.#marker)
    if (sharesTurns && this.#options.connection.isCluster) this.#setMarker(sharesTurns.ttlMs)
  }

  /** Looks for the marker, if the last time is some time ago: for later decisions. */
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

  /** Sets the marker, if it does not last for most of this time anyway. */
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

/** The queues in which none was seen to wait a moment ago, by the keys of their records; and so the marker of all. */
class UnwaitedQueues {
  /** Until when, by the performance clock. */
  readonly #until = new Map<string, number>()

  /** A command that was sent at an instant by the performance clock has found none. */
  add(key: string, sentAt: number): void {
    if (this.#until.size > MAX_UNWAITED) this.#until.clear()
    this.#until.set(key, sentAt + ASSUME_UNWAITED_MS)
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
