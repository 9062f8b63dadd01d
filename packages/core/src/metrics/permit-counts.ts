import { REFUND, RELEASE, type ResolvedLimit, type StoreRequest } from '../store/store.js'
import { countsPermits } from '../store/units.js'
import { getOrInsert } from '../util/get-or-insert.js'
import type { PermitCounts } from './snapshot.js'

interface Taken {
  readonly policy: string
  readonly ttlMs: number
  units: number
  /** When they lapse unless they are renewed: by the performance clock. */
  until: number
}

interface Sums {
  active: number
  taken: number
  released: number
  lapsed: number
}

/** Permits followed by their id. There are no more than the limits of a server's policies admit at once; this bounds a mistake. */
const MAX_FOLLOWED = 100_000

/** The permits of `concurrency` limits that this process holds. */
export class Permits {
  readonly #taken = new Map<string, Taken>()
  readonly #byPolicy = new Map<string, Sums>()

  /** `policy`: its label. */
  take(policy: string, request: StoreRequest): void {
    const { units, ttlMs } = permitsIn(request)
    if (units === 0 || this.#taken.has(request.permitId)) return
    const sums = this.#sumsOf(policy)
    sums.taken += units
    if (this.#taken.size >= MAX_FOLLOWED) this.#sweep()
    if (this.#taken.size >= MAX_FOLLOWED) return
    sums.active += units
    this.#taken.set(request.permitId, { policy, units, ttlMs, until: performance.now() + ttlMs })
  }

  /** Renewed, released or refunded. */
  change(request: StoreRequest): void {
    const taken = this.#taken.get(request.permitId)
    if (!taken) return
    const { op } = request
    if (op !== RELEASE && op !== REFUND) {
      taken.until = performance.now() + taken.ttlMs
      return
    }
    const units = op === RELEASE ? taken.units : Math.min(taken.units, permitsIn(request).units)
    const sums = this.#sumsOf(taken.policy)
    taken.units -= units
    sums.active -= units
    sums.released += units
    if (taken.units === 0) this.#taken.delete(request.permitId)
  }

  read(): PermitCounts[] {
    this.#sweep()
    return [...this.#byPolicy].map(([policy, sums]) => ({ policy, ...sums }))
  }

  #sweep(): void {
    const now = performance.now()
    for (const [id, { policy, units, until }] of this.#taken) {
      if (until > now) continue
      const sums = this.#sumsOf(policy)
      sums.active -= units
      sums.lapsed += units
      this.#taken.delete(id)
    }
  }

  #sumsOf(policy: string): Sums {
    return getOrInsert(this.#byPolicy, policy, () => ({ active: 0, taken: 0, released: 0, lapsed: 0 }))
  }
}

/** How many permits a request is about, over all limits, and how long they are held. */
function permitsIn({ plan, costs }: StoreRequest): { units: number; ttlMs: number } {
  let units = 0
  let ttlMs = 0
  for (const [c, cell] of plan.cells.entries()) {
    if (!countsPermits(cell)) continue
    units += costs[c] as number
    ttlMs = Math.max(ttlMs, (cell.limits[0] as ResolvedLimit).windowMs)
  }
  return { units, ttlMs }
}
