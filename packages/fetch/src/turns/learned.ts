import type { Quota, QuotaLimit } from '../quota/quota-types.js'

export type Pace = 'even' | 'burst'

/** No pause between two requests is longer: what a service asks for beyond it is a hold. */
const MAX_INTERVAL_MS = 60_000
/** The part of a quota that is spent evenly by `pace: 'burst'`, too. */
const LAST_PART = 0.1
/** Resets in whole seconds differ by as much within a window. */
const WINDOW_TOLERANCE_MS = 1000

interface Known extends QuotaLimit {
  /** Units left after the last response that told them. */
  readonly remaining: number
  /** By the clock of `performance.now()`. */
  readonly resetAt: number
  readonly toldAt: number
}

/** What this process has learned from the responses of one key. */
export class Learned {
  /** Requests that have been sent and not answered. */
  inFlight = 0
  /** Requests that wait for their turn. */
  waiting = 0
  readonly #pace: Pace
  #limits: readonly Known[] = []
  #hasAnswered = false
  #heldUntil = 0
  #wake: (() => void) | undefined

  constructor(pace: Pace) {
    this.#pace = pace
  }

  /** Whether a response has told what is left, and it still holds; or told nothing. */
  isKnown(now: number): boolean {
    return this.#hasAnswered && this.#limits.every(({ isBucket, resetAt }) => isBucket || resetAt > now)
  }

  /** Takes in the response to a request that was sent at an instant; undefined for one that failed. */
  answered(quota: Quota | undefined, sentAt: number, now: number): void {
    this.inFlight--
    if (!quota || quota.limits.length === 0) {
      this.#limits = this.#limits.map((known) => ({ ...known, remaining: Math.max(0, known.remaining - 1) }))
    } else {
      this.#limits = quota.limits.flatMap((limit) => this.#known(limit, sentAt, now))
    }
    if (quota) this.#hasAnswered = true
    this.#wake?.()
  }

  #known(limit: QuotaLimit, sentAt: number, now: number): Known[] {
    const { remaining, resetAfterMs, isBucket } = limit
    if (limit.unit !== 'requests' || remaining === undefined || (resetAfterMs === undefined && !isBucket)) return []
    const resetAt = now + (resetAfterMs ?? 0)
    const before = this.#limits.find(({ name }) => name === limit.name)
    // Responses overtake each other: of requests that were in flight together, the one that tells less was counted later.
    const isOvertaken = before !== undefined && before.toldAt > sentAt && before.limit === limit.limit && !isBucket
    const isSameWindow = isOvertaken && Math.abs(before.resetAt - resetAt) <= WINDOW_TOLERANCE_MS
    const least = isSameWindow ? Math.min(before.remaining, remaining) : remaining
    return [{ ...limit, remaining: least, resetAt, toldAt: now }]
  }

  /** Holds the requests of this process alone. */
  hold(ms: number, now: number): void {
    this.#heldUntil = Math.max(this.#heldUntil, now + ms)
  }

  /** Milliseconds until there is a unit that no request in flight takes; 0 now. */
  waitMs(now: number): number {
    return this.#limits.reduce(
      (longest, known) => {
        if (leftOf(known, now) - this.inFlight >= 1) return longest
        return Math.max(longest, known.isBucket ? perUnitMs(known) : known.resetAt - now)
      },
      Math.max(0, this.#heldUntil - now),
    )
  }

  /** Resolves at the next response, as it may tell of more room. */
  nextAnswer(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  /** The pause after a request that is sent now, so that what is left lasts. */
  intervalMs(now: number): number {
    const longest = this.#limits.reduce((longest, known) => Math.max(longest, this.#intervalOf(known, now)), 0)
    return Math.min(MAX_INTERVAL_MS, longest)
  }

  #intervalOf(known: Known, now: number): number {
    const { limit = 0, isBucket, resetAt } = known
    const left = leftOf(known, now) - this.inFlight
    if (this.#pace === 'burst' && left > limit * LAST_PART) return 0
    if (isBucket) return (perUnitMs(known) * limit) / (limit + Math.max(0, left))
    return Math.max(0, resetAt - now) / Math.max(1, left)
  }
}

/** Units left: those of a bucket come back meanwhile, and all of a window that is over are unknown, so none is in the way. */
function leftOf(known: Known, now: number): number {
  const { remaining, limit = 0, isBucket, resetAt, toldAt } = known
  if (!isBucket) return resetAt <= now ? Number.POSITIVE_INFINITY : remaining
  const per = perUnitMs(known)
  return per === 0 ? Math.max(limit, remaining) : Math.min(Math.max(limit, remaining), remaining + (now - toldAt) / per)
}

/** The time in which one unit of a bucket comes back: it is full at its reset. */
function perUnitMs({ limit = 0, remaining, resetAt, toldAt }: Known): number {
  return limit > remaining ? (resetAt - toldAt) / (limit - remaining) : 0
}
