import { isThenable } from '../../util/thenable.js'

/** Hands a value to the next step: at once, or when its promise resolves. */
export function whenKnown<Value, Result>(
  value: Value | PromiseLike<Value>,
  next: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> {
  return isThenable(value) ? Promise.resolve(value).then(next) : next(value)
}
