/**
 * Where refusals count as well, a counter may exceed its limit, up to a ceiling: the most that fits 4 bytes and whose product
 * with the window stays below 2^53, but never less than the limit.
 */

const LARGEST_INT = 2 ** 31 - 1
const LARGEST_EXACT = 2 ** 53 - 1

/** Most units that a window counts, refusals among them. */
export function ceilingOf(limit: number, windowMs: number): number {
  return Math.max(limit, Math.min(LARGEST_INT, Math.floor(LARGEST_EXACT / windowMs)))
}
