import { SluiceError } from '@sluice/core'
import { invalidPolicy, wholeNumber } from '@sluice/core/internal'
import { HitLedger } from './hit-ledger.js'
import { checkTerms, claimName, type Hit, Hits, type Terms } from './hits.js'
import { type BridgeOptions, checkOptions } from './options.js'

/** The options of a store whose peer takes hits back after the response. */
export interface HitStoreOptions extends BridgeOptions {
  /**
   * The limit of the store where the peer's `limit` is a function of the request: the highest that it returns.
   *
   * Required there, as the store does not see the request. Requests above the function's result count, until there are
   * so many.
   * @default the peer's `limit`
   */
  readonly maxLimit?: number
  /**
   * Maximum of hits and keys that this process holds, with some 500 bytes each.
   *
   * They are for `skipFailedRequests` and `skipSuccessfulRequests`. Beyond it, hits of further keys stay counted,
   * whatever their response is.
   * @default 100,000
   */
  readonly maxHits?: number
}

/** The options of the peer that a store learns in `init`. */
export interface HitStoreInit {
  readonly windowMs: number
  readonly limit: number | ((...args: never[]) => unknown)
  readonly skipFailedRequests?: boolean
  readonly skipSuccessfulRequests?: boolean
}

/** The hits of a client within the window, and when it may come again. */
export interface ClientHits {
  readonly totalHits: number
  /** When a refused request would be admitted, or when the limit of an admitted one is as good as new. */
  readonly resetTime: Date | undefined
}

/** Counts for express-rate-limit and hono-rate-limiter, which tell a store the limit once and take hits back by key. */
export class HitStore {
  /** Counts are shared by all processes and stores of one name. */
  readonly localKeys = false
  /** Tells hits of one request under two names apart. */
  readonly prefix: string
  readonly #options: HitStoreOptions
  readonly #hits: Hits
  #terms: Terms | undefined
  #ledger: HitLedger | undefined
  /** The reason for which no request can be counted. */
  #fault: unknown

  /** @internal */
  constructor(peer: string, options: HitStoreOptions) {
    checkOptions(`${peer}: store`, options, ['maxLimit', 'maxHits'])
    this.#hits = new Hits(peer, { limit: 'limit', windowMs: 'windowMs' }, options)
    this.#options = options
    this.prefix = `${this.#hits.name}:`
    const { maxLimit, maxHits } = options
    if (maxLimit !== undefined) wholeNumber(this.#hits.where, 'maxLimit', maxLimit, 1)
    if (maxHits !== undefined) wholeNumber(this.#hits.where, 'maxHits', maxHits, 1)
  }

  /**
   * Takes the peer's options. Requests fail with the error that it throws, where the peer only logs it.
   *
   * @throws SluiceError `INVALID_POLICY`: no `maxLimit` for a function, numbers that no limit can have, another caller's options
   */
  init(options: HitStoreInit): void {
    try {
      this.#init(options)
    } catch (error) {
      this.#fault ??= error
      throw error
    }
  }

  /** Charges a hit, if there is room. */
  async increment(key: string): Promise<ClientHits> {
    const terms = this.#knownTerms()
    const hit = await this.#hits.take(terms, key)
    this.#ledger?.note(key, hit, terms.windowMs)
    // A function may return more than `maxLimit`, where the peer would admit a hit that is not charged.
    const isAboveAll = !hit.allowed && this.#options.maxLimit !== undefined
    return clientHits(isAboveAll ? { ...hit, used: Number.MAX_SAFE_INTEGER } : hit)
  }

  /** Takes a hit of this process back: a refused one, else the oldest. Does nothing where there is none. */
  async decrement(key: string): Promise<void> {
    await this.#ledger?.cancel(key)
  }

  /** The hits of a client. Undefined if it has none. */
  async get(key: string): Promise<ClientHits | undefined> {
    const hit = await this.#hits.look(this.#knownTerms(), key)
    return hit.used === 0 ? undefined : clientHits(hit)
  }

  /** Forgets the hits of a client. Blocks stay. */
  async resetKey(key: string): Promise<void> {
    const terms = this.#knownTerms()
    this.#ledger?.forget(key)
    if (terms.limit > 0) await this.#hits.limiterFor(terms).reset(key)
  }

  #init(options: HitStoreInit): void {
    const { where } = this.#hits
    const limit = this.#limitOf(options.limit)
    const terms = { limit, windowMs: options.windowMs }
    const earlier = this.#terms
    if (earlier && (earlier.limit !== limit || earlier.windowMs !== terms.windowMs)) {
      const remedy = `another caller of this store has ${earlier.limit} per ${earlier.windowMs} ms: make a store for each`
      invalidPolicy(where, 'limit', 'the same for all callers', `${limit} per ${terms.windowMs} ms`, remedy)
    }
    checkTerms(this.#hits, terms)
    claimName(this.#hits, this.#options.store, terms)
    this.#terms = terms
    // Without these options the peer takes no hit back.
    const { skipFailedRequests = true, skipSuccessfulRequests = true } = options
    if (skipFailedRequests || skipSuccessfulRequests) this.#ledger ??= new HitLedger(this.#options.maxHits ?? 100_000)
  }

  #limitOf(limit: HitStoreInit['limit']): number {
    const { where } = this.#hits
    const { maxLimit } = this.#options
    if (typeof limit !== 'function') {
      if (maxLimit !== undefined) invalidPolicy(where, 'maxLimit', 'none beside a limit that is a number', maxLimit)
      return limit
    }
    return maxLimit ?? invalidPolicy(where, 'maxLimit', 'the highest result of the function in limit', maxLimit)
  }

  #knownTerms(): Terms {
    if (this.#fault !== undefined) throw this.#fault
    if (this.#terms) return this.#terms
    throw new SluiceError(
      'INVALID_POLICY',
      `${this.#hits.where}: expected init with the limit before the first request`,
    )
  }
}

function clientHits({ used, waitMs }: Hit): ClientHits {
  return { totalHits: used, resetTime: waitMs === undefined ? undefined : new Date(Date.now() + waitMs) }
}
