const MAX_INTERNED = 65_536

/** A copy of a text that holds no chunk of the log in memory, as a slice of one does. */
export function copied(text: string): string {
  // V8 copies short slices by itself.
  return text.length < 13 ? text : Buffer.from(text, 'utf16le').toString('utf16le')
}

/** Texts that come again and again, as addresses do: one copy each, which keeps its hash for the maps of the replay. */
export class Interned {
  readonly #texts = new Map<string, string>()

  of(text: string): string {
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    // Whoever comes often is soon in it again.
    if (this.#texts.size >= MAX_INTERNED) this.#texts.clear()
    const copy = copied(text)
    this.#texts.set(copy, copy)
    return copy
  }
}

/** Decodes the escapes of Apache and nginx: `\"`, `\\`, `\n` and `\xHH`, whose bytes are UTF-8. */
export function unescaped(text: string): string {
  if (!text.includes('\\')) return text
  const bytes = text.replace(ESCAPE, (_, code: string) =>
    code.length === 3 ? String.fromCharCode(Number.parseInt(code.slice(1), 16)) : (LETTERS[code] ?? code),
  )
  // Bytes above 127 come from \xHH alone, unless the log is UTF-8 already.
  return HIGH.test(text) ? bytes : Buffer.from(bytes, 'latin1').toString()
}

const ESCAPE = /\\(x[0-9a-fA-F]{2}|[^x])/g
const HIGH = /[^\0-\x7f]/
const LETTERS: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', v: '\v', f: '\f' }

/** A whole number between two positions of a line. Undefined where there is anything but digits. */
export function wholeNumber(line: string, start: number, end: number): number | undefined {
  if (start === end || end - start > 15) return undefined
  let number = 0
  for (let at = start; at < end; at++) {
    const digit = line.charCodeAt(at) - 48
    if (digit < 0 || digit > 9) return undefined
    number = number * 10 + digit
  }
  return number
}
