import { SluiceError, show } from './errors.js'
import { hashOf } from './hash.js'

/** A longer key is kept as its hash, so that nobody fills memory with long names. */
const LONGEST_KEY = 256
const HASH_START = '#'
const HASH_LENGTH = 23

/** @throws SluiceError `INVALID_KEY` */
export function checkedKey(where: string, key: unknown): string {
  // Nearly every key can be told by its length to be kept as it is.
  const length = typeof key === 'string' ? key.length : 0
  if (length > 0 && length <= LONGEST_KEY && length !== HASH_LENGTH) return key as string
  return identityOf(where, key)
}

function identityOf(where: string, key: unknown): string {
  if (typeof key === 'string' && key !== '') return bounded(key)
  if (typeof key === 'number' && Number.isFinite(key)) return String(key)
  if (typeof key === 'bigint') return bounded(String(key))
  throw new SluiceError('INVALID_KEY', `${where}: key: expected a non-empty string or a number, got ${show(key)}`)
}

function bounded(key: string): string {
  // What reads like a hash is hashed too, or whoever sends another's hash would be counted with him.
  const readsLikeHash = key.length === HASH_LENGTH && key.startsWith(HASH_START)
  return key.length > LONGEST_KEY || readsLikeHash ? hashOf(key) : key
}
