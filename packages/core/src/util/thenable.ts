/** What user functions may return instead of a value, from whatever promise library. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  try {
    return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
  } catch {
    // What cannot be inspected is a value, and a wrong one: the caller reports it.
    return false
  }
}
