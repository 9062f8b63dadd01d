/** Whether it is an object that names no units: one of requests then, and one permit. */
export function namesNothing(value: unknown): boolean {
  try {
    return [Object.prototype, null].includes(Object.getPrototypeOf(value)) && Object.keys(value as object).length === 0
  } catch {
    return false
  }
}
