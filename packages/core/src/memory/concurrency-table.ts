import * as concurrency from '../kernels/concurrency.js'
import { STRIDE } from '../store/store.js'
import { KeyedValues } from './keyed-values.js'
import { Table, type TableTerms } from './table.js'

/** A state's only cell: the end of its last permit. */
const END = 0
const CELLS = 1

/** The ids of an identity's permits, and the end of each, soonest first. A request of cost 2 holds two of one id. */
interface Permits {
  readonly permitIds: string[]
  readonly ends: number[]
}

/** Bytes of an identity's permits beside its row, and of each permit: an entry in both arrays, and its id. */
const PERMITS_BYTES = 440
const PERMIT_BYTES = 90

const NO_PERMITS: Permits = { permitIds: [], ends: [] }

export class ConcurrencyTable extends Table {
  readonly #limit: number
  readonly #ttlMs: number
  /** One entry per state. */
  readonly #byIdentity: KeyedValues<Permits>

  #permits = NO_PERMITS
  /** The index of the first permit that counts. */
  #first = 0

  constructor([limit, ttlMs]: readonly number[], terms: TableTerms) {
    super(terms)
    this.#limit = limit as number
    this.#ttlMs = ttlMs as number
    this.#byIdentity = terms.like instanceof ConcurrencyTable ? terms.like.#byIdentity : new KeyedValues()
  }

  look(identity: string, now: number, need: number): number {
    this.#permits = (this.find(identity, now, need) && this.#byIdentity.get(identity)) || NO_PERMITS
    this.#first = concurrency.firstHeld(this.#permits.ends, now)
    return this.#wait()
  }

  charge(cost: number, permitId: string): void {
    const permits = Math.min(cost, this.#limit - this.#held)
    if (permits <= 0) return
    if (!this.hasState) this.#open()
    this.#permits.permitIds.splice(0, this.#first)
    this.#permits.ends.splice(0, this.#first)
    this.took(-PERMIT_BYTES * this.#first)
    this.#hold(permitId, permits)
  }

  /** A refunded permit is released. */
  refund(cost: number, _receipt: number, chargedAt: number, permitId: string): void {
    // It is at this index unless it was renewed, and further back otherwise.
    const likely = concurrency.firstHeld(this.#permits.ends, chargedAt + this.#ttlMs - 1)
    const released = this.#release(permitId, cost, likely)
    if (released < cost) this.#release(permitId, cost - released, 0)
    if (this.hasState && this.#permits.ends.length === 0) this.drop()
  }

  override renew(cost: number, permitId: string): boolean {
    const permits = this.#release(permitId, cost, this.#first)
    if (permits > 0) this.#hold(permitId, permits)
    return permits === cost
  }

  heal(): void {
    const { ends } = this.#permits
    const latest = this.now + this.#ttlMs
    for (let i = ends.length - 1; i >= 0 && (ends[i] as number) > latest; i--) ends[i] = latest
  }

  report(values: number[], from: number, admitted: boolean): number {
    const { ends } = this.#permits
    values[from] = Math.max(0, this.#limit - this.#held)
    values[from + 1] = admitted ? 0 : this.#wait()
    values[from + 2] = this.#held === 0 ? 0 : Math.min((ends.at(-1) as number) - this.now, this.#ttlMs)
    values[from + 3] = 0
    return from + STRIDE
  }

  protected end(): number {
    return this.cells[this.at + END] as number
  }

  /** Forgetting a held permit would admit one too many. */
  protected consumed(): number {
    return 1
  }

  protected override bytesBeside(identity: string): number {
    return PERMITS_BYTES + PERMIT_BYTES * (this.#byIdentity.get(identity)?.ends.length ?? 0)
  }

  protected override gone(identity: string): void {
    this.#byIdentity.delete(identity)
  }

  get #held(): number {
    return this.#permits.ends.length - this.#first
  }

  #wait(): number {
    return concurrency.waitFor(this.#permits.ends, this.#first, this.now, this.need, this.#limit, this.#ttlMs)
  }

  #open(): void {
    this.keep(0, CELLS)
    this.#permits = { permitIds: [], ends: [] }
    this.#byIdentity.set(this.identity, this.#permits)
  }

  /** Holds new permits. They end last, unless the clock has stepped back. */
  #hold(permitId: string, permits: number): void {
    const { permitIds, ends } = this.#permits
    const end = this.now + this.#ttlMs
    let at = ends.length
    while (at > 0 && (ends[at - 1] as number) > end) at--
    for (let n = 0; n < permits; n++) {
      permitIds.splice(at, 0, permitId)
      ends.splice(at, 0, end)
    }
    this.took(PERMIT_BYTES * permits)
    this.cells[this.at + END] = ends.at(-1) as number
    this.#first = concurrency.firstHeld(ends, this.now)
  }

  /** Releases up to `max` permits of an id, from index `from` on, and returns their number. */
  #release(permitId: string, max: number, from: number): number {
    const { permitIds, ends } = this.#permits
    let released = 0
    for (let i = from; i < permitIds.length && released < max; ) {
      if (permitIds[i] !== permitId) i++
      else {
        permitIds.splice(i, 1)
        ends.splice(i, 1)
        released++
      }
    }
    if (released > 0) this.took(-PERMIT_BYTES * released)
    this.#first = concurrency.firstHeld(ends, this.now)
    return released
  }
}
