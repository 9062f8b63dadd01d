import type { DecidingParts } from './peek.js'

const parts = new WeakMap<object, DecidingParts>()

/** Notes the guard of a limiter, for those who ask what it would decide. */
export function notePartsOf(limiter: object, of: DecidingParts): void {
  parts.set(limiter, of)
}

/** Undefined for a limiter without HTTP. */
export function partsOfLimiter(limiter: object): DecidingParts | undefined {
  return parts.get(limiter)
}
