import type { Quota } from '../quota/quota-types.js'
import * as kernel from './kernel.js'
import type { SharedQuota } from './shared-quota.js'
import { toldLimits } from './told-limits.js'

/** A request that may be sent. */
export interface Taken {
  readonly own: kernel.QuotaTaken
  /** Undefined where this process alone has decided. */
  readonly shared: kernel.QuotaTaken | undefined
}

/** What a request may do now: wait, or be sent. */
export interface LearnedLook extends kernel.QuotaLook {
  readonly taken: Taken | undefined
}

/** Between two looks at the store: a tenth of the wait, within these. */
const LEAST_PAUSE_MS = 50
const MOST_PAUSE_MS = 5000

/** For the state in a store of a request that it does not know. */
const UNKNOWN: kernel.QuotaTaken = { slot: 0, at: 0 }

/**
 * What has been learned of the quota of one key.
 *
 * Processes on one Redis share it. Each also keeps what its own responses tell: while Redis is away, it spends as large a part of
 * that as it had of all requests before.
 */
export class Learned {
  /** Requests that wait for their turn. */
  waiting = 0
  readonly #isEven: boolean
  readonly #shared: SharedQuota | undefined
  readonly #own = kernel.emptyState()
  #heldUntil = 0
  #wake: (() => void) | undefined
  /** The last look at the store, and when. */
  #last: (kernel.QuotaLook & { readonly at: number; readonly limits: number }) | undefined
  /** The requests of this process and of all, since its first. */
  #mine = 0
  #allBefore = 0
  #all = 0

  constructor(isEven: boolean, shared: SharedQuota | undefined) {
    this.#isEven = isEven
    this.#shared = shared
  }

  get inFlight(): number {
    return this.#own.newer + this.#own.older
  }

  /** Takes a unit for a request, or tells how long it has to wait for one. Never throws: without the store, this process decides. */
  async take(): Promise<LearnedLook> {
    if (this.#shared && !this.#tellsNothing) {
      try {
        return await this.#takeShared(this.#shared)
      } catch {
        this.#last = undefined
      }
    }
    const now = this.#aged()
    const look = kernel.look(this.#own, now, this.#isEven, this.#shared ? this.#percent : 100)
    const taken = look.waitMs > 0 ? undefined : { own: kernel.take(this.#own, now, look.isFirst), shared: undefined }
    return { ...look, taken }
  }

  async #takeShared(quota: SharedQuota): Promise<LearnedLook> {
    const { taken: shared, takenByAll, limits, ...look } = await quota.take(this.#isEven)
    const now = this.#aged()
    this.#last = { ...look, at: now, limits }
    // The store forgets keys that are not in use.
    if (this.#mine === 0 || takenByAll < this.#all) [this.#mine, this.#allBefore] = [0, takenByAll - (shared ? 1 : 0)]
    this.#all = takenByAll
    if (!shared) return { ...look, taken: undefined }
    this.#mine++
    return { ...look, taken: { own: kernel.take(this.#own, now, false), shared } }
  }

  /** The share of this process in all requests. */
  get #percent(): number {
    const all = this.#all - this.#allBefore
    return all > 0 ? Math.min(100, Math.max(1, Math.floor((100 * this.#mine) / all))) : 100
  }

  /** A service that tells nothing has no quota to share. */
  get #tellsNothing(): boolean {
    return this.#own.isKnown && this.#own.limits.length === 0 && this.#last?.limits === 0
  }

  /** Takes in what became of a request. */
  answered(taken: Taken, quota: Quota | undefined, outcome: kernel.QuotaOutcome): void {
    const limits = toldLimits(quota)
    const now = this.#aged()
    kernel.told(this.#own, now, taken.own, outcome, limits)
    // Later commands on the same key come after this one. If it is lost, the store counts the request as in flight for a while.
    if (taken.shared || limits.length > 0) {
      this.#shared?.told(taken.shared ?? UNKNOWN, outcome, limits).catch(() => {})
    }
    this.#last = undefined
    this.#wake?.()
  }

  #aged(): number {
    const now = Math.floor(performance.now())
    kernel.age(this.#own, now)
    return now
  }

  /** Holds the requests of this process alone. */
  hold(ms: number, now: number): void {
    this.#heldUntil = Math.max(this.#heldUntil, now + ms)
  }

  /** Milliseconds until a unit is left, as far as this process knows; 0 now. */
  waitMs(now: number): number {
    const { waitMs, at } = this.#last ?? { ...this.#ownLook(), at: now }
    return Math.max(0, this.#heldUntil - now, waitMs > 0 ? at + waitMs - now : 0)
  }

  /** Of such a wait, the ms until it is worth to ask: responses to other processes tell of more room than there was. */
  askAfterMs(waitMs: number, now: number): number {
    if (!this.#last || this.#last.waitMs === 0 || this.#heldUntil > now) return waitMs
    const pauseMs = Math.min(MOST_PAUSE_MS, Math.max(LEAST_PAUSE_MS, this.#last.waitMs / 10))
    return Math.max(0, Math.min(waitMs, this.#last.at + pauseMs - now))
  }

  /** The pause in µs after a request that is sent now, as far as this process knows. */
  get intervalUs(): number {
    return (this.#last ?? this.#ownLook()).intervalUs
  }

  #ownLook(): kernel.QuotaLook {
    const now = this.#aged()
    return kernel.look(this.#own, now, this.#isEven)
  }

  /** Calls back at the next response, as it may tell of more room. Returns a function that ends it. */
  onAnswer(wake: () => void): () => void {
    this.#wake = wake
    return () => {
      this.#wake = undefined
    }
  }
}
