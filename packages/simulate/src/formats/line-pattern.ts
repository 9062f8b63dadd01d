/** A part of a line that has a name, and the text behind it: empty for the last part, which reaches to the end. */
export interface PatternPart {
  readonly name: string
  readonly until: string
  /** For parts that contain the text behind them: their length, such as 26 for a date with spaces. */
  readonly length?: number
  /** Whether the line may end with the part, without the text behind it. */
  readonly mayEnd?: boolean
  /** Whether the part is a list such as `192.0.2.1, 192.0.2.2 : 192.0.2.3`, whose spaces do not end it. */
  readonly isList?: boolean
}

/** Lines whose parts are told apart by the texts between them. */
export class LinePattern {
  readonly names: readonly string[]
  /** Where the parts of the line that matched last begin and end. */
  readonly starts: Int32Array
  readonly ends: Int32Array
  readonly #prefix: string
  readonly #parts: readonly PatternPart[]
  readonly #isOpen: boolean

  /** @param isOpen whether anything may follow */
  constructor(prefix: string, parts: readonly PatternPart[], isOpen = false) {
    this.names = parts.map(({ name }) => name)
    this.starts = new Int32Array(parts.length)
    this.ends = new Int32Array(parts.length)
    this.#prefix = prefix
    this.#parts = parts
    this.#isOpen = isOpen
  }

  matches(line: string): boolean {
    if (!line.startsWith(this.#prefix)) return false
    const parts = this.#parts
    let at = this.#prefix.length
    for (let i = 0; i < parts.length; i++) {
      const { until, length, isList, mayEnd } = parts[i] as PatternPart
      let end = until === '' ? line.length : endOf(line, length === undefined ? at : at + length, until, isList)
      if (end < 0) {
        if (!mayEnd) return false
        end = line.length
      }
      this.starts[i] = at
      this.ends[i] = end
      at = Math.min(line.length, end + until.length)
    }
    return this.#isOpen || at === line.length
  }

  /** Whether a line matches, and its part of that name. */
  part(line: string, name: string): string | undefined {
    const index = this.names.indexOf(name)
    return index >= 0 && this.matches(line) ? line.slice(this.starts[index], this.ends[index]) : undefined
  }
}

const QUOTE = 34
const BACKSLASH = 92

/** Where the text is for the first time from there on, as no part of an escape. Negative where it is not. */
function endOf(line: string, from: number, until: string, isList: boolean | undefined): number {
  // The search for one character is several times as fast as that for a text.
  const first = until[0] as string
  const isQuote = until.charCodeAt(0) === QUOTE
  let end = line.indexOf(first, from)
  while (end >= 0) {
    const isEnd = until.length === 1 || line.startsWith(until, end)
    if (isEnd && !(isQuote && isEscaped(line, from, end)) && !(isList && isWithinList(line, end))) return end
    end = line.indexOf(first, end + 1)
  }
  return -1
}

function isEscaped(line: string, from: number, at: number): boolean {
  let before = at
  while (before > from && line.charCodeAt(before - 1) === BACKSLASH) before--
  return (at - before) % 2 === 1
}

function isWithinList(line: string, at: number): boolean {
  return line[at] === ' ' && (line[at - 1] === ',' || line[at - 1] === ':' || line.startsWith(' : ', at))
}
