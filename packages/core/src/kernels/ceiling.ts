/**
 * Where refusals count as well, a counter goes beyond its limit, up to a ceiling: what fits 4 bytes and a product with the
 * window below 2^53, and in any case the limit.
 */

const LARGEST_INT = 2 ** 31 - 1
const LARGEST_EXACT = 2 ** 53 - 1

/** Most units that a window counts, refusals among them. */
export function ceilingOf(limit: number, windowMs: number): number {
  return Math.max(limit, Math.min(LARGEST_INT, Math.floor(LARGEST_EXACT / windowMs)))
}
