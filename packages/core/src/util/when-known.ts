import { isThenable } from './thenable.js'

/** A promise only where something has to be awaited. */
export type MaybePromise<T> = T | Promise<T>

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
  if (!values.some(isThenable)) return next(values)
  const known = [...values]
  // Not `Promise.all(values)`, which inspects every value: one that cannot be inspected is wrong, and `next` reports it.
  const awaited = values.map(async (value, i) => {
    if (isThenable(value)) known[i] = await value
  })
  return Promise.all(awaited).then(() => next(known))
}

/** Handles promises that are not awaited, since another function has thrown: a rejection would end the process. */
export function ignorePromises(values: readonly unknown[]): void {
  for (const value of values) if (isThenable(value)) Promise.resolve(value).catch(() => {})
}
