/** Whether it holds options by their names: the entries of a `Map` would be silently ignored. */
export function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(Symbol.iterator in value)
}
