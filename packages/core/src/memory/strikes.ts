import { type BanRules, type BanStart, endOf, pardoned, type StrikeRecord, struck } from '../kernels/strikes.js'
import { ExpiringValues } from './expiring-values.js'
import { rowBytes, type Usage } from './usage.js'

interface Kept {
  readonly record: StrikeRecord
  readonly rules: BanRules
}

/** A ban that ends at `until`, and how long after that its rung is remembered. */
export interface KeptRung {
  readonly rung: number
  readonly until: number
  readonly forgetAfterMs: number
}

/** Bytes of a record beside its row and its strikes: two objects, an array, and the pointers to them. */
const RECORD_BYTES = 136
/** How many records are looked at to make room for one. */
const SAMPLE = 8

/** Strikes and rungs by ban and identity. */
export class StrikeRecords extends ExpiringValues<Kept> {
  readonly #maxBytes: number

  /** Beyond `maxBytes` records are forgotten. */
  constructor(usage: Usage, graceMs: number, maxBytes: number) {
    super(usage, graceMs)
    this.#maxBytes = maxBytes
  }

  protected endOf({ record, rules }: Kept): number {
    return endOf(record, rules)
  }

  protected bytesOf(key: string, { record }: Kept): number {
    return RECORD_BYTES + rowBytes(1, key) + 8 * record.strikes.length
  }

  /** Notes a strike, and returns the ban that it starts, if it does. */
  strike(key: string, now: number, weight: number, jitterMs: number, rules: BanRules): BanStart | undefined {
    const before = this.byKey.get(key)
    const { record, ban } = struck(before?.record, now, weight, jitterMs, rules)
    this.put(key, before, { record, rules })
    this.#makeRoom(now)
    return ban
  }

  /** Notes the rung of a ban that comes from elsewhere, where no higher one is known. */
  keepRung(key: string, { rung, until, forgetAfterMs }: KeptRung, now: number): void {
    const before = this.byKey.get(key)
    if (before && before.record.rung >= rung) return
    const record = { rung, since: until, strikes: [] }
    // All that is looked at of a record without strikes; the next strike brings the rules.
    const rules = { after: 1, withinMs: 1, forgetAfterMs, rungs: [] }
    this.put(key, before, { record, rules })
    this.#makeRoom(now)
  }

  /** Forgets the strikes; the rung stays. */
  pardon(key: string): void {
    const before = this.byKey.get(key)
    if (!before) return
    const record = pardoned(before.record)
    if (record) this.put(key, before, { record, rules: before.rules })
    else this.forget(key)
  }

  /** Forgets the strikes and the rung. */
  forget(key: string): void {
    const kept = this.byKey.get(key)
    if (kept) this.remove(key, kept)
  }

  #makeRoom(now: number): void {
    while (this.usage.bytes > this.#maxBytes && this.size > 1) this.#evict(now)
  }

  /** Of the next few records the least useful: the lowest rung, and among equals the fewest strikes. */
  #evict(now: number): void {
    let victim = ''
    let least = Number.POSITIVE_INFINITY
    for (let n = Math.min(SAMPLE, this.size); n > 0; n--) {
      const kept = this.visit()
      const { record, rules } = kept
      const rank = this.endOf(kept) <= now ? -1 : record.rung * rules.after + record.strikes.length
      if (rank < least) {
        least = rank
        victim = this.byKey.keyAt(this.next)
      }
      this.next++
    }
    this.forget(victim)
  }
}
