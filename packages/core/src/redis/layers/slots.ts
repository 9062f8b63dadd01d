import { REFUND, type StoreRequest, type StoreResult } from '../../store/store.js'
import type { Batches } from '../batching/batches.js'
import type { KnownWaiters } from '../batching/known-waiters.js'
import { HeldPermits } from '../permits/held-permits.js'
import { decideAcrossSlots } from '../slots/across-slots.js'
import type { RedisBase } from '../slots/base.js'
import { isOne } from '../slots/key-slots.js'
import type { Layer } from './layer.js'
import { UnderWay } from './under-way.js'

export interface SlotsOptions extends RedisBase {
  readonly waiters: KnownWaiters
  /** Strikes for a refusal if the plan bans. */
  readonly strikeAfter: (request: StoreRequest, result: StoreResult) => Promise<StoreResult>
}

/**
 * Sends decisions to the servers of their keys. In a cluster, a decision is divided by slot if one script cannot have
 * all its keys.
 */
export class Slots implements Layer {
  readonly #options: SlotsOptions
  readonly #next: Batches
  /** Decisions across slots: between their two phases, the batches do not know of them. */
  readonly #across = new UnderWay()
  readonly #permits = new HeldPermits()

  constructor(options: SlotsOptions, next: Batches) {
    this.#options = options
    this.#next = next
  }

  decide(request: StoreRequest): Promise<StoreResult> {
    const { slots, breaker } = this.#options
    const { identities } = request
    if (slots.isCluster && identities.length > 1) return this.#splitOver(request, slots.ofAll(identities))
    const slot = slots.of(identities[0] as string)
    const cause = breaker.causeFor(slot)
    if (cause) throw cause
    return this.#next.decide(request, slot)
  }

  onResult(request: StoreRequest, result: StoreResult, slot: number): void {
    // Kept permits are released by any process, after this one, too.
    if (request.permitId !== '' && !request.keep) this.#permits.record(request, result, slot)
  }

  /** Releases this process's permits. Permits on unavailable servers expire by themselves. */
  async close(): Promise<void> {
    await this.#across.over()
    await this.#next.close()
    await Promise.allSettled(this.#permits.takeAll().map(async (release) => this.decide(release)))
  }

  #splitOver(request: StoreRequest, slots: readonly number[]): Promise<StoreResult> {
    const { breaker, crossSlots, waiters } = this.#options
    // Checked before any part is charged, as all parts would have to be refunded.
    for (const slot of slots) {
      const cause = breaker.causeFor(slot)
      if (cause) throw cause
    }
    if (isOne(slots)) return this.#next.decide(request, slots[0] as number)
    const bySlot = () => this.#runBySlot(request, slots)
    const isTogether =
      request.op < REFUND &&
      !request.keep &&
      crossSlots !== undefined &&
      !waiters.areLookedFor(request) &&
      crossSlots.areTogether(slots)
    return this.#across.note(isTogether ? this.#next.decide(request, slots[0] as number, bySlot) : bySlot())
  }

  async #runBySlot(request: StoreRequest, slots: readonly number[]): Promise<StoreResult> {
    const { strike } = request
    const unstruck = { ...request, strike: undefined }
    const result = await decideAcrossSlots(unstruck, slots, (part, slot) => this.#next.decide(part, slot))
    // A refusal across slots is known only now. It strikes in a second step, which may be lost and is not sent twice.
    return strike === undefined ? result : this.#options.strikeAfter(request, result)
  }
}
