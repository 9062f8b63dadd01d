import { isHash, type KeyValue, LONGEST_VALUE } from '../store/identity.js'
import { SluiceError, show } from '../util/errors.js'
import { hashOf } from '../util/hash.js'
import { RequestFault } from '../util/request-fault.js'
import { isThenable } from '../util/thenable.js'

/**
 * The value of a key as it is stored. `ofRequest`: the key is a request's, which may have none.
 *
 * @throws SluiceError `INVALID_KEY`; a `RequestFault` where the request is to blame
 */
export function checkedKey(where: string, key: unknown, ofRequest = false): string {
  // Nearly every key is stored as it is, and shows that by its length and its first character.
  if (typeof key === 'string' && key.length > 0 && key.length <= LONGEST_VALUE && !isHash(key)) return key
  return storedValue(where, key, ofRequest)
}

function storedValue(where: string, key: unknown, ofRequest: boolean): string {
  if (isKeyValue(key)) return bounded(String(key))
  const message = `${where}: key: expected a non-empty string or a number, got ${show(key)}`
  // No client sends a promise or a function.
  if (!ofRequest || typeof key === 'function' || isThenable(key)) throw new SluiceError('INVALID_KEY', message)
  if (!isMissing(key)) throw new RequestFault('wrong key', message)
  const remedy = ' (with the option anonymous, "by-ip" or "skip", a request may have none)'
  throw new RequestFault('missing key', message + remedy)
}

/** Whether a key is missing, rather than of a wrong type. */
export function isMissing(key: unknown): boolean {
  return key === undefined || key === null || key === ''
}

/** Whether a value may be counted as a key. */
export function isKeyValue(value: unknown): value is KeyValue {
  return typeof value === 'string' ? value !== '' : typeof value === 'bigint' || Number.isFinite(value)
}

function bounded(key: string): string {
  // Values that look like a hash are hashed too, or a client could send the hash of another client's value and be counted as that one.
  return key.length > LONGEST_VALUE || isHash(key) ? hashOf(key) : key
}
