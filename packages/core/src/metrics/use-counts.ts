import type { UseCounts } from './snapshot.js'

/** Hundredths of a limit, and one more for decisions that needed more than all of it. */
const BUCKETS = 100
/** Quotients of whole numbers: 0.29 of a limit of 100 must not be taken for a little more than 29 hundredths. */
const ROUNDING = 1e-9

/** In place of the capacity of a limit that has had another one, as after a change, or that differs between clients or processes. */
export const RESIZED = -1

/** The capacity that two counts of a limit share; without one `RESIZED`, or 0 where either has none. */
export function commonCapacity(one: number, other: number): number {
  if (one === other) return one
  return one === 0 || other === 0 ? 0 : RESIZED
}

/** Counts the shares of one limit that decisions needed, in fixed memory. */
export class LimitUseCounts {
  readonly #ownPolicy: string
  readonly #limit: string
  readonly #counts = new Float64Array(BUCKETS + 1)
  /** Undefined before the first plan, `RESIZED` or 0 where there is none for a lower limit. */
  #capacity: number | undefined

  constructor(ownPolicy: string, limit: string) {
    this.#ownPolicy = ownPolicy
    this.#limit = limit
  }

  /** `need`: a share of the limit, above 1 where it was not enough. */
  add(need: number): void {
    const bucket = need > 1 ? BUCKETS : Math.max(0, Math.ceil(need * BUCKETS - ROUNDING) - 1)
    ;(this.#counts[bucket] as number)++
  }

  /** @param capacity that of decisions from here on; 0 if they do not bound what a lower limit would have refused */
  startWith(capacity: number): void {
    this.#capacity = this.#capacity === undefined ? capacity : commonCapacity(this.#capacity, capacity)
  }

  read(policy: string, tier: string): Omit<UseCounts, 'refusedElsewhere'> {
    const counts = Array.from(this.#counts)
    const decisions = counts.reduce((sum, count) => sum + count, 0)
    const quantile = (share: number) => {
      let left = decisions * share
      const bucket = counts.findIndex((count) => {
        left -= count
        return left <= ROUNDING * decisions
      })
      return bucket === BUCKETS ? Number.POSITIVE_INFINITY : (bucket + 1) / BUCKETS
    }
    return {
      policy,
      tier,
      ownPolicy: this.#ownPolicy,
      limit: this.#limit,
      capacity: this.#capacity ?? 0,
      decisions,
      beyond: counts[BUCKETS] as number,
      p50: quantile(0.5),
      p90: quantile(0.9),
      p95: quantile(0.95),
      p99: quantile(0.99),
      p999: quantile(0.999),
      counts,
    }
  }
}
