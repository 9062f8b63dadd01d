import { isThenable } from './thenable.js'

/** A promise only where something has to be awaited. */
export type Later<T> = T | Promise<T>

/** Hands a value to the next step: at once, or when its promise resolves. */
export function whenKnown<Value, Result>(
  value: Value | PromiseLike<Value>,
  next: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> {
  return isThenable(value) ? Promise.resolve(value).then(next) : next(value)
}

/** Hands the results of user functions to the next step: at once, or when the promises among them have resolved. */
export function whenAllKnown<Result>(
  values: readonly unknown[],
  next: (values: readonly unknown[]) => Result,
): Result | Promise<Result> {
  return values.some(isThenable) ? Promise.all(values).then(next) : next(values)
}

/** Handles promises that are not awaited, since another function has thrown: a rejection would end the process. */
export function ignorePromises(values: readonly unknown[]): void {
  for (const value of values) if (isThenable(value)) Promise.resolve(value).catch(() => {})
}
