import type { BlockEntry } from '@sluice/core'
import { instantText, tableOf } from '@sluice/core/internal'

/** Blocks and bans for people. */
export function blocksTable(entries: readonly BlockEntry[]): string {
  return tableOf(
    ['identity', 'policy', 'until', 'times', 'rung', 'reason'],
    entries.map(({ kind, value, policy = 'all', until, times, ban, reason }) => [
      `${kind}=${value}`,
      policy,
      instantText(until),
      String(times),
      ban ? String(ban.rung) : '–',
      reason,
    ]),
  )
}
