import { percentDecoded } from '../../util/percent.js'
import { RequestFault } from '../../util/request-fault.js'

/** Maximum of pairs of one name. Every parser takes the first, unless there are blanks that no browser writes. */
const MAX_PAIRS = 16

/**
 * Returns a reader of a cookie's value, unquoted and percent-decoded. It reads the first pair of the name, as the parsers of
 * the frameworks do.
 *
 * Where those parsers differ (`cookie` from 0.4 to 2, Koa's `cookies`, `@fastify/cookie`), a client could write one session
 * in many ways and get a budget for each. A value that they read differently is therefore an error.
 *
 * Several pairs of one name are no error: a browser sends one for each path and domain, and every parser takes the first.
 * More than 16 pairs that may be the first are an error.
 *
 * The reader throws a SluiceError `INVALID_KEY` where parsers read different values.
 */
export function cookieReader(name: string): (header: string | undefined) => string | undefined {
  // The widest white space of any parser: older ones trim as JavaScript does, newer ones SP and HTAB.
  const pair = new RegExp(`(?:^|;)(\\s*)${name.replace(/[$*+.^|()[\]{}?\\]/g, '\\$&')}(\\s*)=`, 'g')
  return (header) => {
    if (!header?.includes(name)) return undefined
    let found: string | undefined
    let pairs = 0
    pair.lastIndex = 0
    for (let match = pair.exec(header); match; match = pair.exec(header)) {
      const [, before, behind] = match as unknown as [string, string, string]
      const semicolon = header.indexOf(';', pair.lastIndex)
      const end = semicolon < 0 ? header.length : semicolon
      const value = readValue(header.slice(pair.lastIndex, end), found)
      if (value === undefined || ++pairs > MAX_PAIRS) {
        const expected = `one value of "${name}" that every parser of cookies reads`
        throw new RequestFault('differing cookies', `byCookie: expected ${expected}`)
      }
      found = value
      // Koa accepts only spaces before a name, and none behind it. No parser reads beyond such a pair.
      if (behind === '' && /^ *$/.test(before)) break
      pair.lastIndex = end
    }
    return found
  }
}

/** The value that every parser reads. Undefined if a parser may read another value, or where it is not `known`. */
function readValue(text: string, known: string | undefined): string | undefined {
  const trimmed = text.trim()
  const start = text.indexOf(trimmed)
  // Older parsers trim more than SP and HTAB.
  if (/[^ \t]/.test(text.slice(0, start) + text.slice(start + trimmed.length))) return undefined
  const bare = trimmed.startsWith('"') ? unquoted(trimmed, text) : trimmed
  if (bare === undefined) return undefined
  const value = percentDecoded(bare) ?? bare
  if (known !== undefined) return value === known ? known : undefined
  // Here the quote was encoded; newer parsers leave quotes that were not. Express' cookie-parser reads `j:` as JSON, which has
  // many spellings of one value: `j:"a"`, `j:"\u0061"`. Whether it can is not asked: parsing hostile text is dear.
  return value.startsWith('"') || value.startsWith('j:') ? undefined : value
}

/** Removes quotes that all parsers recognize. Koa and older parsers cut off the last character, whatever it is; newer ones none. */
function unquoted(trimmed: string, text: string): string | undefined {
  const inner = trimmed.slice(1, -1)
  return trimmed === text && trimmed.length > 1 && trimmed.endsWith('"') && inner.trim() === inner ? inner : undefined
}
