import { CELL_KINDS } from '../../../store/cell-kinds.js'
import { type Cell, type LeaseTerms, STRIDE, type StoreRequest, type StoreResult } from '../../../store/store.js'
import type { Lease } from './lease.js'
import type { LeaseClock, Moment } from './lease-clock.js'

/** A request that waits for a lease under way. */
export interface Waiting {
  readonly request: StoreRequest
  readonly resolve: (result: StoreResult | Promise<StoreResult>) => void
  readonly reject: (error: unknown) => void
}

/** The state of one plan and its identities in this process, and the lease that it holds for them. */
export class Pool {
  readonly identities: readonly string[]
  lease: Lease | undefined
  /** Decisions that wait for a lease under way, in order; undefined while none is. There is no lease then. */
  waiting: Waiting[] | undefined
  /** False when a block or a reset has ended it: a lease that is still under way serves its waiters and ends, too. */
  isOpen = true
  isForgotten = false
  /** Units admitted in this period, and in the one before. */
  admitted = 0
  #admittedBefore = 0
  #since: Moment
  readonly #size: number
  readonly #periodMs: number
  /** Units that were free when the store last said so. */
  #room = 0

  constructor({ plan, identities }: StoreRequest, clock: LeaseClock) {
    this.identities = identities
    const { size, ttlMs } = (plan.cells[0] as Cell).lease as LeaseTerms
    this.#size = size
    // Of segments, windows or intervals; infinite for cells that have none.
    const lengths = plan.cells.map(({ kernel, params }) => CELL_KINDS[kernel].lease.windowLength(params))
    this.#periodMs = Math.min(ttlMs, ...lengths)
    this.#since = clock.now()
  }

  /**
   * How many units to ask for: the `least` that are needed now, or what a period before took, or this one until
   * now, so that leases double while traffic keeps coming and shrink with it; of what is left for all, no more
   * than half, so that close to the limit units go to the process that needs them. A multiple of `cost`, so that nothing is left
   * over where all ask for the same.
   */
  unitsFor(least: number, cost: number, clock: LeaseClock): number {
    const elapsedMs = clock.since(this.#since)
    if (elapsedMs >= this.#periodMs) {
      this.#admittedBefore = elapsedMs < 2 * this.#periodMs ? this.admitted : 0
      this.admitted = 0
      this.#since = clock.now()
    }
    const wanted = Math.min(this.#size, Math.max(this.admitted, this.#admittedBefore), Math.floor(this.#room / 2))
    return Math.max(least, wanted - (wanted % cost))
  }

  /** Whether the store had as much room when it last said so. */
  hasRoom(units: number): boolean {
    return units <= this.#room
  }

  observe({ plan }: StoreRequest, { values, offset, block }: StoreResult): void {
    const rooms = Array.from({ length: plan.reports }, (_, i) => values[offset + i * STRIDE] as number)
    this.#room = block ? 0 : Math.min(...rooms)
  }

  /** Leases did not do: only what is admitted from now on counts as demand. */
  cool(): void {
    this.admitted = 0
    this.#admittedBefore = 0
  }

  isIdle(clock: LeaseClock): boolean {
    return !this.lease && !this.waiting && clock.since(this.#since) >= 2 * this.#periodMs
  }
}

/** The pools of one plan. */
export class PlanPools extends Map<string, Pool> {
  #walk: Iterator<[string, Pool]> | undefined

  /** Starts the walk anew. A map's iterator keeps all that was in the map when it was asked last, gone or not. */
  rewind(): void {
    this.#walk = undefined
  }

  /** Makes room for another pool if the next one, in a circle, holds nothing: a key that is asked for often is soon back. */
  evict(): boolean {
    // Map iterators survive deletions and see additions, so one iterator can walk for ever.
    let step = this.#walk?.next()
    if (!step || step.done) {
      this.#walk = this.entries()
      step = this.#walk.next()
    }
    if (step.done) return false
    const [name, { lease, waiting }] = step.value
    return !lease && !waiting && this.delete(name)
  }
}
