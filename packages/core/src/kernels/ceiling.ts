/**
 * If refusals count too, a counter may exceed its limit, up to a ceiling. The ceiling fits in 4 bytes, its product with
 * the window stays below 2^53, and it is never less than the limit.
 */

const LARGEST_INT = 2 ** 31 - 1
const LARGEST_EXACT = 2 ** 53 - 1

/** Maximum units that a window counts, including refusals. */
export function ceilingOf(limit: number, windowMs: number): number {
  return Math.max(limit, Math.min(LARGEST_INT, Math.floor(LARGEST_EXACT / windowMs)))
}
