import { inLine } from './escape.js'

/** Rows for people, below their headings. */
export function tableOf(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [headings, ...rows].map((row) => row.map(inLine))
  const widths = headings.map((_, i) => Math.max(...all.map((row) => (row[i] as string).length)))
  const lines = all.map((row) => row.map((text, i) => text.padEnd(widths[i] as number)).join('  '))
  return lines.map((line) => `${line.trimEnd()}\n`).join('')
}

/** An instant, to the second. */
export function instantText(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}
