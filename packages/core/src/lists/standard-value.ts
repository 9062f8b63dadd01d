import { checkedKey } from '../policy/key.js'
import { credentials } from '../util/credentials.js'
import { sha256Of } from '../util/hash.js'

/**
 * The value that is counted for a raw one, by the kind alone: as `byHeader`, `byCookie`, `byUser` and `keyed` count it when
 * they are given no options.
 */
export function standardValue(kind: string, raw: string): string {
  if (kind.startsWith('header:')) {
    const isCredentials = kind === 'header:authorization' || kind === 'header:proxy-authorization'
    return sha256Of(isCredentials ? credentials(raw) : raw)
  }
  if (kind.startsWith('cookie:')) return sha256Of(raw)
  return checkedKey('list', raw)
}
