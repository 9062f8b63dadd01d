import { inLine } from '../../program/terminal.js'
import type { PolicyFigures, StoreFigures } from './figures.js'
import type { OffendersOfPolicy } from './offenders.js'
import type { Period } from './watch.js'

/** One line: for logs and pipes. */
export function lineOf({ total, stores, answered, failures }: Period): string {
  const away = stores.filter(({ isAvailable }) => !isAvailable).length
  const parts = [
    `${rate(total.decisions)} decisions/s`,
    `${rate(total.refused)} refused/s`,
    ...(total.reported > 0 ? [`${rate(total.reported)} reported/s`] : []),
    `${rate(total.alone)} alone/s`,
    `${total.waiting} waiting`,
    ...(away > 0 ? [`${away} of ${stores.length} stores unavailable`] : []),
    ...(failures.size > 0 ? [`${failures.size} of ${answered + failures.size} servers silent`] : []),
  ]
  return `${parts.join(', ')}\n`
}

const COLUMNS = ['policy', 'decisions/s', 'refused/s', 'share', 'reported/s', 'alone/s', 'waiting', 'refused most by']

/** A screen: for people. `rows`: how many policies it shows. */
export function screenOf(period: Period, rows: number, offenders: readonly OffendersOfPolicy[]): string {
  const { total, policies, sources, stores, answered, failures } = period
  const hidden = policies.length - rows
  const shown = policies.slice(0, rows)
  return [
    `${answered} of ${answered + failures.size} servers answer`,
    ...[...failures].map(([name, why]) => `  ${name}: ${why}`),
    '',
    ...table([COLUMNS, ...[total, ...shown].map(rowOf)]),
    ...(hidden > 0 ? [`and ${hidden} more`] : []),
    '',
    `decided by  ${sources.map(([source, value]) => `${source} ${percent(value, total.decisions)}`).join('  ') || 'nothing'}`,
    '',
    ...table([['store', 'state', 'pending', 'keys', 'blocked'], ...stores.map(storeRow)]),
    ...offenders.flatMap(offendersText),
    '',
  ]
    .map(inLine)
    .join('\n')
}

function rowOf({ policy, decisions, refused, reported, alone, waiting, limit }: PolicyFigures): string[] {
  return [
    policy,
    rate(decisions),
    rate(refused),
    percent(refused, decisions),
    rate(reported),
    rate(alone),
    String(waiting),
    limit,
  ]
}

function storeRow({ store, isAvailable, pending, keys, blocked }: StoreFigures): string[] {
  const state = isAvailable ? 'available' : 'UNAVAILABLE'
  return [store, state, String(pending), keys === undefined ? '–' : String(keys), String(blocked ?? '–')]
}

function offendersText({ policy, offenders }: OffendersOfPolicy): string[] {
  const rows = offenders.map(({ kind, value, refusals }) => [`${kind}=${value}`, String(refusals)])
  return ['', ...table([[`refused by ${policy} in 10 minutes`, 'times'], ...rows])]
}

/** The first column is aligned to the left, numbers to the right, and a last column of words to the left. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => (row[i] ?? '').length)))
  return rows.map((row) =>
    row
      .map((text, i) => (isWords(i) ? text.padEnd(widths[i] ?? 0) : text.padStart(widths[i] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

const isWords = (column: number) => column === 0 || column === COLUMNS.length - 1

function rate(perSecond: number): string {
  return perSecond > 0 && perSecond < 10 ? perSecond.toFixed(1) : String(Math.round(perSecond))
}

function percent(part: number, whole: number): string {
  return whole > 0 ? `${Math.round((100 * part) / whole)} %` : '–'
}
