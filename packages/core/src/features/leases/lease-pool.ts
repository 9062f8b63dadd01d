import { CELL_KINDS } from '../../kinds/all.js'
import { type Cell, type LeaseTerms, STRIDE, type StoreRequest, type StoreResult } from '../../store/store.js'
import type { Lease } from './lease.js'
import type { LeaseClock, Moment } from './lease-clock.js'

/** A request that waits for a lease under way. */
export interface Waiting {
  readonly request: StoreRequest
  readonly resolve: (result: StoreResult | Promise<StoreResult>) => void
  readonly reject: (error: unknown) => void
}

/** The state of one plan and its identities in this process, with their lease. */
export class Pool {
  readonly identities: readonly string[]
  lease: Lease | undefined
  /**
   * Decisions that wait for a requested lease, in order; undefined if none is requested. There is no lease meanwhile.
   */
  waiting: Waiting[] | undefined
  /** False once a block or a reset has ended the pool. A requested lease still serves its waiters, then ends, too. */
  isOpen = true
  isForgotten = false
  /** Units admitted in this period, and in the previous one. */
  admitted = 0
  #admittedBefore = 0
  #since: Moment
  readonly #size: number
  readonly #periodMs: number
  /** Free units in the store's last report. */
  #room = 0

  constructor({ plan, identities }: StoreRequest, clock: LeaseClock) {
    this.identities = identities
    const { size, ttlMs } = (plan.cells[0] as Cell).lease as LeaseTerms
    this.#size = size
    // Lengths of segments, windows or intervals; infinite for cells without any.
    const lengths = plan.cells.map(({ kernel, params }) => CELL_KINDS[kernel].lease.windowLength(params))
    this.#periodMs = Math.min(ttlMs, ...lengths)
    this.#since = clock.now()
  }

  /**
   * The number of units to request. At least `least`, which are needed now. Otherwise the units that the previous
   * period took, or this one so far: leases double under steady traffic and shrink with it. At most half of the free
   * units, so that close to the limit units go to the process that needs them. A multiple of `cost`, so that equal
   * requests leave no remainder.
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

  /** Whether the store's last report had room for these units. */
  hasRoom(units: number): boolean {
    return units <= this.#room
  }

  observe({ plan }: StoreRequest, { values, offset, block }: StoreResult): void {
    const rooms = Array.from({ length: plan.reports }, (_, i) => values[offset + i * STRIDE] as number)
    this.#room = block ? 0 : Math.min(...rooms)
  }

  /** A lease failed: only units admitted from now on count as demand. */
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

  /** Restarts the walk. A map's iterator retains everything that was in the map at its last step, deleted or not. */
  rewind(): void {
    this.#walk = undefined
  }

  /** Makes room for another pool if the next one, in a circle, holds nothing: a frequent key is soon back. */
  evict(): boolean {
    // Map iterators survive deletions and see additions, so one iterator can walk indefinitely.
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
