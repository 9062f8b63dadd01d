import type { Snapshot } from '../../metrics/snapshot.js'
import { AWAY, DURATION, DURATION_SUM, FigureNames } from './names.js'

/** The name of the limiter before a console. Its decisions are in no figures. */
export const CONSOLE_LIMITER = 'sluice-console'

const names = new FigureNames()

/** The counts of this process by their names in the store. They never fall. */
export function countsOf({ decisions, durations, outbound }: Snapshot, awayMs: number): Map<string, number> {
  const counts = new Map<string, number>()
  const add = (name: string, count: number) => counts.set(name, (counts.get(name) ?? 0) + count)
  let sum = 0
  for (const row of decisions) if (row.policy !== CONSOLE_LIMITER) add(names.of(row), row.count)
  for (const row of outbound) for (const [name, count] of names.ofResponses(row)) add(name, count)
  for (const { policy, source, histogram } of durations) {
    if (source !== 'store' || policy === CONSOLE_LIMITER) continue
    sum += histogram.sum
    for (const [i, count] of histogram.counts.entries()) if (count > 0) add(DURATION + i, count)
  }
  if (sum > 0) add(DURATION_SUM, Math.round(sum * 1000))
  if (awayMs > 0) add(AWAY, awayMs)
  return counts
}
