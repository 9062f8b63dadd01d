import type { UsedRow } from './answers.js'

/** Quotients of whole numbers round: 0.3 of 100 units must not be taken for less than 30. */
const ROUNDING = 1e-9

/**
 * The most decisions that a lower limit would have refused: those that needed more, and those that something else refused. Undefined
 * if nothing bounds them, or if the limit is not lower. `boundsLower` in the core has the proof.
 *
 * @param lower units, at least 1; of a bucket the capacity, at the same refill
 */
export function mostRefused(used: UsedRow, lower: number): number | undefined {
  const { capacity, bounds, counts, decisions, refusedElsewhere } = used
  if (capacity === null || !(lower >= 1 && lower < capacity)) return undefined
  const needed = counts.filter((_, i) => !((bounds[i] ?? 2) * capacity <= lower + ROUNDING))
  return Math.min(
    needed.reduce((sum, count) => sum + count, refusedElsewhere),
    decisions,
  )
}
