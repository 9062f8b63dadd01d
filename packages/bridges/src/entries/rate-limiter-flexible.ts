/** `@sluice/bridges/rate-limiter-flexible`: a limiter with the methods of rate-limiter-flexible. */
import { FlexibleLimiter, type FlexibleOptions } from '../flexible-limiter.js'

export type {
  ConsumeOptions,
  FlexibleLimiter,
  FlexibleOptions,
  FlexiblePeer,
  FlexibleResult,
} from '../flexible-limiter.js'
export type { BridgeOptions, Rate } from '../options.js'

/**
 * A limiter in place of `new RateLimiterRedis(options)` and the like.
 *
 * @example const limiter = sluiceLimiter({ store: redisStore(client), keyPrefix: 'login', points: 5, duration: 60 })
 * @throws SluiceError `INVALID_POLICY`
 */
export function sluiceLimiter(options: FlexibleOptions): FlexibleLimiter {
  return new FlexibleLimiter(options)
}
