import { show } from '../../../util/errors.js'
import { ipRange, RANGE_FORMS } from '../../../util/ip-range.js'
import type { EntryDetails, ListBuilder } from '../list-data.js'
import { FileFault } from './lines.js'

/** One range per line; what stands behind `#` or `;` is its reason. */
export function readPlain(text: string, builder: ListBuilder): void {
  linesOf(text).forEach((line, i) => {
    readRange(line, i + 1, builder)
  })
}

/**
 * As `readPlain`, and what `ipset save` writes: `add <set> <range> timeout 600 comment "…"`. Its timeouts are counted from
 * when the file was written.
 */
export function readNetset(text: string, builder: ListBuilder, writtenAt: number): void {
  for (const [i, line] of linesOf(text).entries()) {
    const number = i + 1
    if (/^\s*(?:create|flush|destroy|-N|COMMIT)\b/.test(line)) continue
    const [, entry, rest = ''] = /^\s*(?:add|-A)\s+\S+\s+(\S+)(.*)/s.exec(line) ?? []
    if (entry === undefined) {
      readRange(line, number, builder)
      continue
    }
    if (/\bnomatch\b/.test(rest))
      throw new FileFault(number, 'expected no entry with "nomatch": allow its range instead')
    const [, seconds] = /\btimeout\s+(\d+)/.exec(rest) ?? []
    const [, comment] = /\bcomment\s+"([^"]*)"/.exec(rest) ?? []
    // In ipset a timeout of 0 is none.
    const expiresAt = seconds === undefined || Number(seconds) === 0 ? undefined : writtenAt + 1000 * Number(seconds)
    addRange(entry, number, builder, { reason: comment, expiresAt })
  }
}

function linesOf(text: string): string[] {
  return text.split(/\r?\n|\r$/)
}

function readRange(line: string, number: number, builder: ListBuilder): void {
  const end = line.search(/[#;]/)
  const entry = (end < 0 ? line : line.slice(0, end)).trim()
  if (entry === '') return
  const reason = end < 0 ? undefined : line.slice(end + 1).trim()
  addRange(entry, number, builder, { reason, expiresAt: undefined })
}

function addRange(text: string, number: number, builder: ListBuilder, details: EntryDetails): void {
  const range = ipRange(text)
  if (!range) throw new FileFault(number, `expected ${RANGE_FORMS}, got ${show(text)}`)
  builder.addRange(range, details)
}
