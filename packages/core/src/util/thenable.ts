/** What user functions may return instead of a value, from whatever promise library. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  try {
    return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
  } catch {
    // What does not let itself be looked at is a value, and a wrong one: whoever asked says so.
    return false
  }
}
