import { ExpiringValues } from '../../memory/expiring-values.js'
import { type States, SWEPT_PER_INSERT } from '../../memory/states.js'
import type { Swept } from '../../memory/sweeper.js'
import { rowBytes, textBytes, Usage } from '../../memory/usage.js'
import { NEW_CHARGE, takesNone } from '../../store/kept-charge.js'
import {
  type ChargeOutcome,
  type Keep,
  type KeptCharge,
  RENEW,
  type StoreRequest,
  type StoreResult,
} from '../../store/store.js'
import { chargeId } from '../../util/charge-id.js'
import { Resets } from '../../util/resets.js'

interface KeptRecord {
  readonly charge: KeptCharge
  /** Whether each cell's charge was taken. */
  readonly taken: boolean[]
  /** The number of resets before it. */
  readonly resets: number
  until: number
}

/** The part of `maxBytes` that kept charges may take: beyond it, those that end soonest are forgotten. */
const SHARE = 1 / 4
/** Bytes of a record beside its row and its texts: the request, its result and its id; and of each cell. */
const RECORD_BYTES = 560
const CELL_BYTES = 72
/** The number of records checked to make room for one. */
const SAMPLE = 8

/** The charges of a memory store that are changed by their ids, each until it ends. The twin of `lua/shared/charges.lua`. */
export class KeptRecords extends ExpiringValues<KeptRecord> implements Swept {
  readonly #states: States
  readonly #maxBytes: number
  readonly #resets = new Resets()

  constructor(states: States) {
    super(new Usage(states.usage), states.bounds.graceMs)
    this.#states = states
    this.#maxBytes = states.bounds.maxBytes * SHARE
  }

  protected endOf({ until }: KeptRecord): number {
    return until
  }

  protected bytesOf(key: string, { charge: { request } }: KeptRecord): number {
    const texts = request.identities.reduce((bytes, identity) => bytes + textBytes(identity), 0)
    return RECORD_BYTES + CELL_BYTES * request.costs.length + rowBytes(1, key) + texts
  }

  /** Keeps an admitted charge, and returns its id. */
  keep(request: StoreRequest, result: StoreResult): string {
    const { forMs, id = chargeId() } = request.keep as Keep
    const { now } = result
    this.sweep(now, SWEPT_PER_INSERT)
    this.put(keyOf(request.plan.policy, id), undefined, {
      charge: { request: { ...request, keep: { ...NEW_CHARGE, forMs, id } }, result },
      taken: request.costs.map(() => false),
      resets: this.#resets.count,
      until: now + forMs,
    })
    while (this.usage.bytes > this.#maxBytes && this.size > 1) this.#evict()
    this.#states.sweepLater()
    return id
  }

  find(policy: string, id: string, now: number): KeptCharge | undefined {
    const record = this.byKey.get(keyOf(policy, id))
    return record && record.until > now ? record.charge : undefined
  }

  /**
   * Takes the cells that a change names. Returns those that were not taken before, which are to be changed. A renewal lets the id
   * live on, whichever cells it names.
   */
  take(
    { op, plan, identities, keep }: StoreRequest,
    now: number,
  ): { outcome: ChargeOutcome; taken: readonly boolean[] } {
    const { id = '', takes, forMs } = keep as Keep
    const isRenewal = op === RENEW
    const namesNone = takesNone({ keep })
    const taken = plan.cells.map(() => false)
    const record = this.byKey.get(keyOf(plan.policy, id))
    if (!record || record.until <= now) return { outcome: 'unknown', taken }
    let outcome: ChargeOutcome = 'unknown'
    let isKnown = false
    for (const [c, { identity }] of plan.cells.entries()) {
      if (this.#isReset(record, plan.policy, identities[identity] as string)) continue
      isKnown = true
      if (!(takes?.[c] ?? true)) continue
      if (record.taken[c]) {
        if (outcome === 'unknown') outcome = 'done before'
        continue
      }
      outcome = 'done'
      taken[c] = true
      if (!isRenewal) record.taken[c] = true
    }
    if (isKnown && namesNone) outcome = isRenewal ? 'done' : 'done before'
    if (isKnown && isRenewal) record.until = Math.max(record.until, now + forMs)
    return { outcome, taken }
  }

  /** Makes the ids of charges so far unknown, as far as they are on these identities. */
  reset(policy: string | undefined, identities: readonly string[]): void {
    this.#resets.note(policy, identities)
  }

  #isReset({ resets }: KeptRecord, policy: string, identity: string): boolean {
    return (
      this.#resets.wasResetAfter(resets, policy, identity) || this.#resets.wasResetAfter(resets, undefined, identity)
    )
  }

  /** Forgets the one of the next few records that ends soonest. */
  #evict(): void {
    let victim = ''
    let soonest = Number.POSITIVE_INFINITY
    for (let n = Math.min(SAMPLE, this.size); n > 0; n--) {
      const { until } = this.visit()
      if (until < soonest) {
        soonest = until
        victim = this.byKey.keyAt(this.next)
      }
      this.next++
    }
    this.remove(victim, this.byKey.get(victim) as KeptRecord)
  }
}

function keyOf(policy: string, id: string): string {
  return `${policy}\n${id}`
}
