import * as concurrency from '../kernels/concurrency.js'
import { STRIDE } from '../store/store.js'
import { KeyedValues } from './keyed-values.js'
import { States, type Table, type TableTerms } from './table.js'

/** A state's only cell: when its last lease ends. */
const END = 0
const CELLS = 1

/** The leases of an identity, one per place, and when they end, soonest first. */
interface Places {
  readonly permitIds: string[]
  readonly ends: number[]
}

/** Bytes of an identity's places beside its row, and of each: an entry of either array, and the name of its lease. */
const PLACES_BYTES = 440
const PLACE_BYTES = 90

const NO_PLACES: Places = { permitIds: [], ends: [] }

export class ConcurrencyTable extends States implements Table {
  readonly #limit: number
  readonly #ttlMs: number
  /** As many as there are states. */
  readonly #byIdentity = new KeyedValues<Places>()

  #places = NO_PLACES
  /** The first place that counts. */
  #first = 0

  constructor([limit, ttlMs]: readonly number[], terms: TableTerms) {
    super(terms)
    this.#limit = limit as number
    this.#ttlMs = ttlMs as number
  }

  look(identity: string, now: number, need: number): number {
    this.#places = (this.find(identity, now, need) && this.#byIdentity.get(identity)) || NO_PLACES
    this.#first = concurrency.firstHeld(this.#places.ends, now)
    return this.#wait()
  }

  charge(cost: number, permitId: string): void {
    const places = Math.min(cost, this.#limit - this.#held)
    if (places <= 0) return
    if (!this.isKept) this.#open()
    this.#places.permitIds.splice(0, this.#first)
    this.#places.ends.splice(0, this.#first)
    this.took(-PLACE_BYTES * this.#first)
    this.#hold(permitId, places)
  }

  /** A place given back is a place freed. */
  refund(cost: number, _receipt: number, chargedAt: number, permitId: string): void {
    // That is where it stands unless it was renewed, and then it stands further back.
    const likely = concurrency.firstHeld(this.#places.ends, chargedAt + this.#ttlMs - 1)
    const freed = this.#free(permitId, cost, likely)
    if (freed < cost) this.#free(permitId, cost - freed, 0)
    if (this.isKept && this.#places.ends.length === 0) this.drop()
  }

  renew(cost: number, permitId: string): void {
    const places = this.#free(permitId, cost, this.#first)
    if (places > 0) this.#hold(permitId, places)
  }

  heal(): void {
    const { ends } = this.#places
    const latest = this.now + this.#ttlMs
    for (let i = ends.length - 1; i >= 0 && (ends[i] as number) > latest; i--) ends[i] = latest
  }

  report(values: number[], from: number, admitted: boolean): number {
    const { ends } = this.#places
    values[from] = this.#limit - this.#held
    values[from + 1] = admitted ? 0 : this.#wait()
    values[from + 2] = this.#held === 0 ? 0 : Math.min((ends.at(-1) as number) - this.now, this.#ttlMs)
    values[from + 3] = 0
    return from + STRIDE
  }

  protected end(): number {
    return this.cells[this.at + END] as number
  }

  /** Forgetting a place that is taken would admit one too many. */
  protected consumed(): number {
    return 1
  }

  protected override bytesBeside(identity: string): number {
    return PLACES_BYTES + PLACE_BYTES * (this.#byIdentity.get(identity)?.ends.length ?? 0)
  }

  protected override gone(identity: string): void {
    this.#byIdentity.delete(identity)
  }

  get #held(): number {
    return this.#places.ends.length - this.#first
  }

  #wait(): number {
    return concurrency.waitFor(this.#places.ends, this.#first, this.now, this.need, this.#limit, this.#ttlMs)
  }

  #open(): void {
    this.keep(0, CELLS)
    this.#places = { permitIds: [], ends: [] }
    this.#byIdentity.set(this.identity, this.#places)
  }

  /** Holds places from now on. They end last, unless the clock has stepped back. */
  #hold(permitId: string, places: number): void {
    const { permitIds, ends } = this.#places
    const end = this.now + this.#ttlMs
    let at = ends.length
    while (at > 0 && (ends[at - 1] as number) > end) at--
    for (let n = 0; n < places; n++) {
      permitIds.splice(at, 0, permitId)
      ends.splice(at, 0, end)
    }
    this.took(PLACE_BYTES * places)
    this.cells[this.at + END] = ends.at(-1) as number
    this.#first = concurrency.firstHeld(ends, this.now)
  }

  /** Frees up to `most` places of a lease, of those from index `from` on, and returns how many. */
  #free(permitId: string, most: number, from: number): number {
    const { permitIds, ends } = this.#places
    let freed = 0
    for (let i = from; i < permitIds.length && freed < most; ) {
      if (permitIds[i] !== permitId) i++
      else {
        permitIds.splice(i, 1)
        ends.splice(i, 1)
        freed++
      }
    }
    if (freed > 0) this.took(-PLACE_BYTES * freed)
    this.#first = concurrency.firstHeld(ends, this.now)
    return freed
  }
}
