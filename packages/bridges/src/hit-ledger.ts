import { getOrInsert } from '@sluice/core/internal'
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
  /** The queue that the key is in. */
  queue: Set<string> | undefined
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
  readonly #keys = new Map<string, KeyHits>()
  /**
   * By the length of the window in powers of 2: keys in the order in which they expire, up to that length. A long window of one key
   * does not hold up keys with short ones.
   */
  readonly #queues = new Map<number, Set<string>>()
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
      hits.unchargedUntil = Math.max(hits.unchargedUntil, until)
    }
    this.#keys.set(key, hits)
    if (hits.queue && hits.until > until) return
    hits.until = until
    hits.queue?.delete(key)
    hits.queue = getOrInsert(this.#queues, Math.ceil(Math.log2(windowMs)), () => new Set<string>())
    hits.queue.add(key)
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

  /** Undefined if there is no room. */
  #newKey(until: number): KeyHits | undefined {
    if (this.#size >= this.#max) {
      this.#partialUntil = Math.max(this.#partialUntil, until)
      return undefined
    }
    this.#size++
    return { charged: [], uncharged: 0, unchargedUntil: 0, until, partialUntil: this.#partialUntil, queue: undefined }
  }

  #sweep(now: number): void {
    for (const queue of this.#queues.values()) {
      for (const key of queue) {
        const { until, charged } = this.#keys.get(key) as KeyHits
        if (until > now) break
        queue.delete(key)
        this.#keys.delete(key)
        this.#size -= charged.length + 1
      }
    }
  }
}
