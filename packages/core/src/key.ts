import { SluiceError, show } from './errors.js'
import { hashOf } from './hash.js'

/** A longer key is kept as its hash, so that nobody fills memory with long names. */
const LONGEST_KEY = 256

/** @throws SluiceError `INVALID_KEY` */
export function checkedKey(where: string, key: unknown): string {
  if (typeof key === 'string' && key !== '') return key.length > LONGEST_KEY ? hashOf(key) : key
  if ((typeof key === 'number' && Number.isFinite(key)) || typeof key === 'bigint') return String(key)
  throw new SluiceError('INVALID_KEY', `${where}: key: expected a non-empty string or a number, got ${show(key)}`)
}
