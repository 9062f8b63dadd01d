import { Hits } from './hits.js'
import { type BridgeOptions, checkOptions } from './options.js'

/** The result of a hit, in whole seconds. */
export interface ThrottlerRecord {
  readonly totalHits: number
  /** Seconds until the limit is as good as new; for a refused request until it would be admitted. */
  readonly timeToExpire: number
  readonly isBlocked: boolean
  /** Seconds until a refused request would be admitted; else 0. */
  readonly timeToBlockExpire: number
}

/** Counts for @nestjs/throttler, which names the limit with each hit. */
export class ThrottlerHits {
  readonly #hits: Hits

  /** @internal */
  constructor(options: BridgeOptions) {
    checkOptions('nestjs-throttler: storage', options)
    this.#hits = new Hits('nestjs-throttler', { limit: 'limit', windowMs: 'ttl', forMs: 'blockDuration' }, options)
  }

  /**
   * Charges a hit if there is room; a refused one blocks the key for `blockDuration`. `ttl` and `blockDuration` in ms; with a
   * `blockDuration` of 0 it may come again as soon as there is room.
   */
  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<ThrottlerRecord> {
    const terms = {
      limit,
      windowMs: ttl,
      block: blockDuration === 0 ? undefined : { after: 1, forMs: blockDuration },
    }
    // No name with a key equals another one, as JSON ends by itself.
    const {
      allowed,
      used,
      waitMs = ttl,
    } = await this.#hits.take(terms, JSON.stringify([throttlerName]) + this.#hits.keyOf(key))
    const seconds = Math.ceil(waitMs / 1000)
    return {
      totalHits: used,
      timeToExpire: seconds,
      isBlocked: !allowed,
      timeToBlockExpire: allowed ? 0 : seconds,
    }
  }
}
