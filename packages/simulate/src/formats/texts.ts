/** A copy of a text that holds no chunk of the log in memory, as a slice of one does. */
export function copied(text: string): string {
  // V8 copies slices of up to 12 characters.
  let copy = text.slice(0, 12)
  for (let at = 12; at < text.length; at += 12) copy += text.slice(at, at + 12)
  return copy
}

/** Decodes the escapes of Apache and nginx: `\"`, `\\`, `\n` and `\xHH`, whose bytes are UTF-8. */
export function unescaped(text: string): string {
  if (!text.includes('\\')) return text
  const bytes = text.replace(ESCAPE, (written, code: string) =>
    code.length === 3 ? String.fromCharCode(Number.parseInt(code.slice(1), 16)) : (LETTERS[code] ?? written),
  )
  // Bytes above 127 come from \xHH alone, unless the log is UTF-8 already.
  return HIGH.test(text) ? bytes : Buffer.from(bytes, 'latin1').toString()
}

const ESCAPE = /\\(x[0-9a-fA-F]{2}|[^x])/g
const HIGH = /[^\0-\x7f]/
const LETTERS: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  b: '\b',
  v: '\v',
  '\\': '\\',
  '"': '"',
}

/** A whole number between two positions of a line. Undefined if there is anything but digits. */
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
