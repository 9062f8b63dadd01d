import type { BlockEntry } from '@sluice/core'

const COLUMNS = ['identity', 'policy', 'until', 'times', 'rung', 'reason'] as const

/** Blocks and bans as people read them. */
export function tableOf(entries: readonly BlockEntry[]): string {
  const rows = [
    [...COLUMNS],
    ...entries.map(({ kind, value, policy = 'all', until, times, ban, reason }) => [
      `${kind}=${value}`,
      policy,
      new Date(until).toISOString().replace(/\.\d+Z$/, 'Z'),
      String(times),
      ban ? String(ban.rung) : '–',
      reason,
    ]),
  ].map((row) => row.map(plain))
  const widths = COLUMNS.map((_, i) => Math.max(...rows.map((row) => (row[i] as string).length)))
  return rows
    .map(
      (row) =>
        `${row
          .map((text, i) => text.padEnd(widths[i] as number))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

/** Without what would steer a terminal. */
function plain(text: string): string {
  return text.replace(/[^\x20-\x7e\u2013]/g, '?')
}
