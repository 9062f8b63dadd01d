import { keysLike } from '../../redis/scripts/walk-keys.js'
import type { RedisBase } from '../../redis/slots/base.js'
import { isKind, textValue } from '../../store/identity.js'

/** Keys that are looked at. */
const MAX_KEYS = 10_000

/** The kinds of the identities in the first 10,000 keys that are found; in a cluster, of one master. */
export async function kindsInRedis({ connection, timeoutMs, prefix }: RedisBase): Promise<readonly string[]> {
  const start = `${prefix}{`
  const keys = await keysLike(connection, timeoutMs, start, MAX_KEYS)
  const kinds = keys.map((key) => textValue(key.slice(start.length)).kind)
  return [...new Set(kinds)].filter(isKind).sort()
}
