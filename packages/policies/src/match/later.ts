/** A promise only where something has to be awaited. */
export type Later<Value> = Value | Promise<Value>

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function'
}
