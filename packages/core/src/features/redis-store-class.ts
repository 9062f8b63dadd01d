import { wrongPolicy } from '../util/errors.js'
import type { RedisStore as Store } from './redis-store.js'

/** A store that `redisStore(client)` made. */
export type RedisStore = Store

/**
 * The class of another library. It makes no store here.
 *
 * @deprecated Write `redisStore(client)`.
 * @throws SluiceError `INVALID_POLICY`
 */
export const RedisStore = function RedisStore(): never {
  return wrongPolicy('RedisStore: write redisStore(client), which makes the store')
} as unknown as new (
  use: 'use redisStore(client)',
) => RedisStore
