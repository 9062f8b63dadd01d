import type { LimitReport } from '../report.js'

const MAX_POINTS = 400

/** The rank curve of worst windows, highest first, thinned evenly on a logarithmic scale. */
export function rankOf(worst: Float64Array): NonNullable<LimitReport['rank']> {
  const points: { rank: number; units: number }[] = []
  for (let at = 0; at < worst.length; ) {
    points.push({ rank: at + 1, units: worst[at] as number })
    const isLast = at === worst.length - 1
    if (isLast) break
    at = Math.min(worst.length - 1, nextRank(at + 1, worst.length) - 1)
  }
  return points
}

/** The next rank that is shown after one. */
function nextRank(rank: number, of: number): number {
  return of <= MAX_POINTS ? rank + 1 : Math.max(rank + 1, Math.ceil(rank * of ** (1 / (MAX_POINTS / 2))))
}

/** The share of clients whose worst window counts for the headroom. */
const SHARE = 0.999

/** A limit over the 99.9th percentile of worst windows, highest first. Undefined without clients. */
export function headroomOf(limit: number, worst: Float64Array): number | undefined {
  if (worst.length === 0) return undefined
  // At most 0.1 % of the clients are above it.
  const at = Math.min(worst.length - 1, Math.floor(worst.length * (1 - SHARE)))
  return limit / (worst[at] as number)
}
