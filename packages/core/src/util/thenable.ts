import { isPropertyOf } from './property-of.js'

/** User functions may return it instead of a value, from whatever promise library. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  const mayBe = (typeof value === 'object' && value !== null) || typeof value === 'function'
  try {
    if (!mayBe || ('then' in Object.prototype && !isPropertyOf(value, 'then'))) return false
    return typeof (value as { then?: unknown }).then === 'function'
  } catch {
    // A value that cannot be inspected is a wrong one: the caller reports it.
    return false
  }
}
