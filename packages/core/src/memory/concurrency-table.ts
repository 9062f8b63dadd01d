import * as concurrency from '../kernels/concurrency.js'
import { type State, States, type Table } from './table.js'

interface PlacesState extends State {
  /** When each lease ends, by its name. */
  ends: Map<string, number>
}

export class ConcurrencyTable extends States<PlacesState> implements Table {
  readonly #limit: number
  readonly #ttlMs: number

  #ends: number[] = []
  #lastEnd = 0

  constructor([limit, ttlMs]: readonly number[], graceMs: number) {
    super(graceMs)
    this.#limit = limit as number
    this.#ttlMs = ttlMs as number
  }

  look(identity: string, now: number, need: number): number {
    this.find(identity, now, need)
    this.#count()
    return concurrency.waitFor(this.#ends, now, need, this.#limit)
  }

  charge(cost: number, lease: string): void {
    const places = Math.min(cost, this.#limit - this.#ends.length)
    if (places <= 0) return
    this.state ??= this.#open()
    for (let n = 0; n < places; n++) this.state.ends.set(`${lease}.${n}`, this.now + this.#ttlMs)
    for (const [other, end] of this.state.ends) if (end <= this.now) this.state.ends.delete(other)
    this.state.resetAt = this.now + this.#ttlMs
    this.#count()
  }

  /** A place given back is a place freed. */
  refund(cost: number, _receipt: number, _chargedAt: number, lease: string): void {
    if (!this.state) return
    for (let n = 0; n < cost; n++) this.state.ends.delete(`${lease}.${n}`)
    this.#count()
    if (this.state.ends.size === 0) this.states.delete(this.identity)
  }

  renew(cost: number, lease: string): void {
    if (!this.state) return
    for (let n = 0; n < cost; n++) {
      const end = this.state.ends.get(`${lease}.${n}`)
      if (end !== undefined && end > this.now) this.state.ends.set(`${lease}.${n}`, this.now + this.#ttlMs)
    }
    this.state.resetAt = this.now + this.#ttlMs
    this.#count()
  }

  heal(): void {
    const latest = this.now + this.#ttlMs
    for (const [lease, end] of this.state?.ends ?? []) if (end > latest) this.state?.ends.set(lease, latest)
  }

  report(values: number[], admitted: boolean): void {
    values.push(
      this.#limit - this.#ends.length,
      admitted ? 0 : concurrency.waitFor(this.#ends, this.now, this.need, this.#limit),
      this.#lastEnd === 0 ? 0 : this.#lastEnd - this.now,
      0,
    )
  }

  /** Forgetting a place that is taken would admit one too many. */
  protected consumed(): number {
    return 1
  }

  #open(): PlacesState {
    const state = { ends: new Map<string, number>(), resetAt: 0 }
    this.states.set(this.identity, state)
    return state
  }

  /** Leases that have not ended; one that ends later than it could have begun to is cut to `ttl` from now. */
  #count(): void {
    this.#ends = []
    this.#lastEnd = 0
    for (const end of this.state?.ends.values() ?? []) {
      if (end <= this.now) continue
      const cut = Math.min(end, this.now + this.#ttlMs)
      this.#ends.push(cut)
      if (cut > this.#lastEnd) this.#lastEnd = cut
    }
  }
}
