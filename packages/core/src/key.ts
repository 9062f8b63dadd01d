import { SluiceError, show } from './errors.js'
import { hashOf } from './hash.js'

/** A longer key is kept as its hash, so that nobody fills memory with long names. */
const LONGEST_KEY = 256
const HASH_START = '#'
const HASH_LENGTH = 23

/**
 * The key as it is kept. `ofRequest`: a request's, of which there may be none.
 *
 * @throws SluiceError `INVALID_KEY`
 */
export function checkedKey(where: string, key: unknown, ofRequest = false): string {
  // Nearly every key can be told by its length to be kept as it is.
  const length = typeof key === 'string' ? key.length : 0
  if (length > 0 && length <= LONGEST_KEY && length !== HASH_LENGTH) return key as string
  return identityOf(where, key, ofRequest)
}

function identityOf(where: string, key: unknown, ofRequest: boolean): string {
  if (typeof key === 'string' && key !== '') return bounded(key)
  if (typeof key === 'number' && Number.isFinite(key)) return String(key)
  if (typeof key === 'bigint') return bounded(String(key))
  const remedy =
    ofRequest && isMissing(key) ? ' (with the option anonymous, "by-ip" or "skip", a request may have none)' : ''
  throw new SluiceError(
    'INVALID_KEY',
    `${where}: key: expected a non-empty string or a number, got ${show(key)}${remedy}`,
  )
}

/** Whether a key function found none, rather than something that is no key. */
export function isMissing(key: unknown): boolean {
  return key === undefined || key === null || key === ''
}

function bounded(key: string): string {
  // What reads like a hash is hashed too, or whoever sends another's hash would be counted with him.
  const readsLikeHash = key.length === HASH_LENGTH && key.startsWith(HASH_START)
  return key.length > LONGEST_KEY || readsLikeHash ? hashOf(key) : key
}
