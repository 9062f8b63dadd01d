import { type BanRules, type BanStart, endOf, forgiven, type StrikeRecord, struck } from '../../kernels/strikes.js'
import { ExpiringValues } from '../../memory/expiring-values.js'
import { rowBytes, type Usage } from '../../memory/usage.js'

interface StoredRecord {
  readonly record: StrikeRecord
  readonly rules: BanRules
}

/** The rung of a ban that ends at `until`, and the time after that for which it is remembered. */
export interface RememberedRung {
  readonly rung: number
  readonly until: number
  readonly forgetAfterMs: number
}

/** Bytes of a record beside its row and its strikes: two objects, an array, and the pointers to them. */
const RECORD_BYTES = 136
/** The number of records checked to make room for one. */
const SAMPLE = 8

/** Strikes and rungs by ban and identity. */
export class StrikeRecords extends ExpiringValues<StoredRecord> {
  readonly #maxBytes: number

  /** Beyond `maxBytes`, records are evicted. */
  constructor(usage: Usage, graceMs: number, maxBytes: number) {
    super(usage, graceMs)
    this.#maxBytes = maxBytes
  }

  protected endOf({ record, rules }: StoredRecord): number {
    return endOf(record, rules)
  }

  protected bytesOf(key: string, { record }: StoredRecord): number {
    return RECORD_BYTES + rowBytes(1, key) + 8 * record.strikes.length
  }

  /** Records a strike, and returns the ban that it starts, if any. */
  strike(key: string, now: number, weight: number, jitterMs: number, rules: BanRules): BanStart | undefined {
    const before = this.byKey.get(key)
    const { record, ban } = struck(before?.record, now, weight, jitterMs, rules)
    this.put(key, before, { record, rules })
    this.#makeRoom(now)
    return ban
  }

  /** Records the rung of a ban that was made elsewhere, unless a higher one is known. */
  keepRung(key: string, { rung, until, forgetAfterMs }: RememberedRung, now: number): void {
    const before = this.byKey.get(key)
    if (before && before.record.rung >= rung) return
    const record = { rung, since: until, strikes: [] }
    // Only these rules are read of a record without strikes; the next strike brings its own.
    const rules = { after: 1, withinMs: 1, forgetAfterMs, rungs: [] }
    this.put(key, before, { record, rules })
    this.#makeRoom(now)
  }

  /** Forgets the strikes; the rung stays. */
  forgive(key: string): void {
    const before = this.byKey.get(key)
    if (!before) return
    const record = forgiven(before.record)
    if (record) this.put(key, before, { record, rules: before.rules })
    else this.forget(key)
  }

  /** Forgets the strikes and the rung. */
  forget(key: string): void {
    const stored = this.byKey.get(key)
    if (stored) this.remove(key, stored)
  }

  #makeRoom(now: number): void {
    while (this.usage.bytes > this.#maxBytes && this.size > 1) this.#evict(now)
  }

  /** Evicts the least useful of the next few records: the lowest rung, and among equals the fewest strikes. */
  #evict(now: number): void {
    let victim = ''
    let least = Number.POSITIVE_INFINITY
    for (let n = Math.min(SAMPLE, this.size); n > 0; n--) {
      const stored = this.visit()
      const { record, rules } = stored
      const rank = this.endOf(stored) <= now ? -1 : record.rung * rules.after + record.strikes.length
      if (rank < least) {
        least = rank
        victim = this.byKey.keyAt(this.next)
      }
      this.next++
    }
    this.forget(victim)
  }
}
