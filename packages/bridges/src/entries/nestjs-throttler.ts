/** `@sluice/bridges/nestjs-throttler`: a storage for @nestjs/throttler. */

import type { BridgeOptions } from '../options.js'
import { ThrottlerHits } from '../throttler-hits.js'

export type { BridgeOptions, Rate } from '../options.js'
export type { ThrottlerHits, ThrottlerRecord } from '../throttler-hits.js'

/**
 * A storage for the option `storage` of @nestjs/throttler.
 *
 * @example ThrottlerModule.forRoot({ throttlers: [{ ttl: 60_000, limit: 100 }], storage: sluiceStorage({ name: 'api', store }) })
 * @throws SluiceError `INVALID_POLICY`
 */
export function sluiceStorage(options: BridgeOptions = {}): ThrottlerHits {
  return new ThrottlerHits(options)
}
