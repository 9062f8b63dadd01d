import { checkedKey } from '../../policy/key.js'
import { secretValue } from '../../util/credentials.js'

/**
 * The value that is counted for a raw one, by the kind alone: as `byHeader`, `byCookie`, `byUser` and `keyed` count it when
 * they are given no options.
 */
export function standardValue(kind: string, raw: string): string {
  return secretValue(kind, raw) ?? checkedKey('list', raw)
}
