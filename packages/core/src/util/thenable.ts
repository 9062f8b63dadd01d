/** User functions may return it instead of a value, from whatever promise library. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  try {
    return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
  } catch {
    // A value that cannot be inspected is a wrong one: the caller reports it.
    return false
  }
}
