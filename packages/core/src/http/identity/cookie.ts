import { RequestFault } from '../../util/request-fault.js'

/**
 * A cookie's value, unquoted and percent-decoded: of the first pair of its name, as the parsers of the frameworks read it.
 * Where those differ (`cookie` from 0.4 to 2, Koa's `cookies`, `@fastify/cookie`), a client could write one session in many
 * ways and get a budget for each. So one value here is one value to every parser, or it is an error.
 *
 * Several pairs of one name are no error: a browser sends one for each path and domain, and every parser takes the first.
 *
 * @throws SluiceError `INVALID_KEY` where parsers read different values
 */
export function cookieValue(header: string | undefined, name: string): string | undefined {
  if (!header?.includes(name)) return undefined
  let found: string | undefined
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals < 0) continue
    const before = pair.slice(0, equals)
    // The most that any parser takes for white space: older ones trim as JavaScript does, newer ones SP and HTAB.
    if (before.trim() !== name) continue
    const value = readValue(pair.slice(equals + 1))
    if (value === undefined || (found !== undefined && value !== found)) {
      throw new RequestFault(
        'differing cookies',
        `byCookie: expected one value of "${name}" that every parser of cookies reads`,
      )
    }
    found = value
    // Koa takes no other white space before a name, and none behind it. No parser looks beyond such a pair.
    if (/^ *$/.test(before.slice(0, -name.length)) && before.endsWith(name)) break
  }
  return found
}

/** The value that each parser's value stands for; undefined where one parser's may stand for several. */
function readValue(text: string): string | undefined {
  const trimmed = text.trim()
  const start = text.indexOf(trimmed)
  // Older parsers trim more than SP and HTAB.
  if (/[^ \t]/.test(text.slice(0, start) + text.slice(start + trimmed.length))) return undefined
  const bare = trimmed.startsWith('"') ? unquoted(trimmed, text) : trimmed
  const value = bare === undefined ? undefined : decoded(bare)
  // A quote that was encoded stands where newer parsers leave a quote that was not.
  return value === undefined || value.startsWith('"') || isJson(value) ? undefined : value
}

/** Quotes that all parsers see as quotes: Koa and older ones cut off the last character, whatever it is, and newer ones none. */
function unquoted(trimmed: string, text: string): string | undefined {
  const inner = trimmed.slice(1, -1)
  return trimmed === text && trimmed.length > 1 && trimmed.endsWith('"') && inner.trim() === inner ? inner : undefined
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

/** What Express' cookie-parser takes for JSON, in which one value has any number of spellings: `j:"a"`, `j:"\u0061"`. */
function isJson(value: string): boolean {
  if (!value.startsWith('j:')) return false
  try {
    return Boolean(JSON.parse(value.slice(2)))
  } catch {
    return false
  }
}
