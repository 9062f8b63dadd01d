import type { Cell, Plan, StoreRequest, WaitingClass, WaitingTurn } from '../../store/store.js'
import type { ResultReader } from '../scripts/decode.js'
import { keyStart, waitingMarker, waitingSuffix } from '../scripts/keys.js'
import { run } from '../scripts/run.js'
import { turnsScript } from '../scripts/scripts.generated.js'
import { encodeWaiting, waitingKeys } from '../scripts/turns.js'
import type { RedisBase } from '../slots/base.js'
import { ClusterWaitingMarker } from './cluster-waiting-marker.js'
import type { PlanTexts } from './plan-texts.js'
import { UnwaitedQueues } from './unwaited-queues.js'

export interface KnownWaitersOptions extends RedisBase {
  readonly texts: PlanTexts
}

/** What is known of requests that wait for their turn across processes. */
export class KnownWaiters {
  readonly #options: KnownWaitersOptions
  readonly #marker: string
  readonly #unwaited = new UnwaitedQueues()
  readonly #clusterMarker: ClusterWaitingMarker | undefined

  constructor(options: KnownWaitersOptions) {
    const { connection, prefix, timeoutMs } = options
    this.#options = options
    this.#marker = waitingMarker(prefix)
    if (!connection.isCluster) return
    this.#clusterMarker = new ClusterWaitingMarker(connection, this.#marker, timeoutMs, this.#unwaited)
  }

  /** The marker of waiters where scripts can look for it and set it. */
  get markerInScripts(): string | undefined {
    return this.#clusterMarker ? undefined : this.#marker
  }

  /** Whether a decision has to look for waiters: not where none was found a moment ago. */
  areLookedFor(request: StoreRequest): boolean {
    const { plan, turn } = request
    if (!plan.sharesTurns) return false
    this.#clusterMarker?.look()
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
    if (sharesTurns) this.#clusterMarker?.set(sharesTurns.ttlMs)
  }

  /** The records of waiters, one for each cell. */
  #recordsOf(request: StoreRequest): string[] {
    const { texts, prefix } = this.#options
    return waitingKeys(request, texts.of(request.plan), prefix)
  }
}
