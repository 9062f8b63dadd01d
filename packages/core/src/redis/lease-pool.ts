import { type Answer, type Ask, type Plan, STRIDE } from '../store.js'
import { type Lease, turnLength } from './lease.js'
import type { LeaseClock, Moment } from './lease-clock.js'

/** An ask that waits for a lease under way. */
export interface Waiting {
  readonly ask: Ask
  readonly resolve: (answer: Answer | Promise<Answer>) => void
  readonly reject: (error: unknown) => void
}

/** What this process knows of one plan and its identities, and holds for them. */
export class Pool {
  readonly identities: readonly string[]
  lease: Lease | undefined
  /** Who waits for a lease under way, in order; undefined while none is. There is no lease then. */
  waiting: Waiting[] | undefined
  /** False when a block or a reset has ended it: a lease that is still under way serves who waits and ends, too. */
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

  constructor({ plan, identities }: Ask, clock: LeaseClock) {
    this.identities = identities
    const { size, ttlMs } = termsOf(plan)
    this.#size = size
    this.#periodMs = Math.min(ttlMs, ...plan.cells.map(turnLength))
    this.#since = clock.now()
  }

  /**
   * How many units to ask for, `cost` being asked for now: what a period before took, or this one until now, so
   * that leases double while traffic keeps coming and shrink with it; of what is left for all, no more than
   * half, so that close to the limit units go to whoever asks. No more than `cost` is no lease.
   */
  unitsFor(cost: number, clock: LeaseClock): number {
    const elapsedMs = clock.since(this.#since)
    if (elapsedMs >= this.#periodMs) {
      this.#admittedBefore = elapsedMs < 2 * this.#periodMs ? this.admitted : 0
      this.admitted = 0
      this.#since = clock.now()
    }
    const wanted = Math.min(this.#size, Math.max(this.admitted, this.#admittedBefore), Math.floor(this.#room / 2))
    // A multiple of what is asked for, so that nothing is left over where all ask for the same.
    return Math.max(cost, wanted - (wanted % cost))
  }

  /** Whether the store had as much room when it last said so. */
  hasRoom(units: number): boolean {
    return units <= this.#room
  }

  hear({ plan }: Ask, { values, offset, block }: Answer): void {
    this.#room = block ? 0 : Number.POSITIVE_INFINITY
    if (!block) {
      for (let i = 0; i < plan.reports; i++) {
        this.#room = Math.min(this.#room, values[offset + i * STRIDE] as number)
      }
    }
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

function termsOf(plan: Plan) {
  const terms = plan.cells[0]?.lease
  if (!terms) throw new TypeError('a plan without a lease')
  return terms
}
