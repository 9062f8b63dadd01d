import type { Hit } from './hits.js'

/** A charged hit, as long as it counts. */
interface Charged {
  readonly verdict: NonNullable<Hit['verdict']>
  /** Units that it still holds. */
  readonly cost: number
  readonly until: number
}

/** The hits of one key. */
interface KeyHits {
  /** Oldest first. */
  readonly charged: Charged[]
  /** Hits without a charge to refund: refused ones, those that a reset has forgotten, and those beyond the bound. */
  uncharged: number
  /** When the last of those has expired. */
  unchargedUntil: number
  /** When all hits have expired. */
  until: number
  /** Until when earlier hits of the key may be missing. */
  readonly partialUntil: number
}

/**
 * The hits of this process, from which a later call takes one back without naming it.
 *
 * Which hit is meant is unknown. Taking back the *oldest* charged one frees the least room: it would have expired first. A hit
 * that holds nothing comes before it, since the call may mean that one. The limit is therefore never exceeded, whatever is meant.
 *
 * Bounded: beyond `max`, a hit of a known key counts as one without a charge, and further keys are not noted: their next hits,
 * within a window of that, are not refunded.
 */
export class HitLedger {
  readonly #max: number
  readonly #now: () => number
  /** In the order of their last hits, which is the order in which they expire. */
  readonly #keys = new Map<string, KeyHits>()
  #size = 0
  #partialUntil = Number.NEGATIVE_INFINITY

  constructor(max: number, now = () => performance.now()) {
    this.#max = max
    this.#now = now
  }

  /** The keys and charged hits that are noted. */
  get size(): number {
    return this.#size
  }

  note(key: string, { allowed, verdict }: Hit, windowMs: number): void {
    const now = this.#now()
    this.#sweep(now)
    const until = now + windowMs
    const hits = this.#keys.get(key) ?? this.#newKey(until)
    if (!hits) return
    if (allowed && verdict && verdict.cost > 0 && this.#size < this.#max) {
      hits.charged.push({ verdict, cost: verdict.cost, until })
      this.#size++
    } else {
      hits.uncharged = hits.unchargedUntil > now ? hits.uncharged + 1 : 1
      hits.unchargedUntil = until
    }
    hits.until = Math.max(hits.until, until)
    this.#keys.delete(key)
    this.#keys.set(key, hits)
  }

  /** Takes back one hit, whichever it was. Resolves when its charge is refunded, if it had one. */
  async cancel(key: string): Promise<void> {
    const hits = this.#keys.get(key)
    if (!hits) return
    if (hits.uncharged > 0 && hits.unchargedUntil > this.#now()) hits.uncharged--
    else await this.refund(key, 1)
  }

  /** Refunds units of the oldest charged hits. Each hit gives units back once, so the rest of a larger one stays charged. */
  async refund(key: string, units: number): Promise<void> {
    const hits = this.#keys.get(key)
    const now = this.#now()
    if (!hits || hits.partialUntil > now) return
    const refunds: Promise<boolean>[] = []
    for (let left = units; left > 0; ) {
      const oldest = hits.charged.shift()
      if (!oldest) break
      this.#size--
      if (oldest.until <= now) continue
      const kept = Math.max(0, oldest.cost - left)
      left -= oldest.cost - kept
      refunds.push(oldest.verdict.settle(kept))
    }
    await Promise.all(refunds)
  }

  /** After a reset the hits hold nothing, but may still be taken back. */
  forget(key: string): void {
    const hits = this.#keys.get(key)
    if (!hits || hits.charged.length === 0) return
    hits.uncharged = (hits.unchargedUntil > this.#now() ? hits.uncharged : 0) + hits.charged.length
    hits.unchargedUntil = hits.until
    this.#size -= hits.charged.length
    hits.charged.length = 0
  }

  /** Undefined where there is no room. */
  #newKey(until: number): KeyHits | undefined {
    if (this.#size >= this.#max) {
      this.#partialUntil = until
      return undefined
    }
    this.#size++
    return { charged: [], uncharged: 0, unchargedUntil: 0, until, partialUntil: this.#partialUntil }
  }

  #sweep(now: number): void {
    for (const [key, hits] of this.#keys) {
      if (hits.until > now) return
      this.#keys.delete(key)
      this.#size -= hits.charged.length + 1
    }
  }
}
