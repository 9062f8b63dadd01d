import { type LogFormat, type ParseLine, WrongLog } from '../formats/format.js'
import type { ParsedLine } from '../formats/parsed-line.js'
import { SimulationError } from '../simulation-error.js'
import { DamagedLog } from './bytes.js'
import { LineSplitter, MAX_LINE_BYTES } from './lines.js'
import type { LogBytes } from './log-source.js'
import type { Tally } from './tally.js'

/** Reads the records of one log in the order of its lines: a batch for each chunk of it. */
export async function* recordsOf(
  { name, chunks }: LogBytes,
  format: LogFormat,
  tally: Tally,
): AsyncGenerator<ParsedLine[], void, void> {
  const splitter = new LineSplitter()
  const parse = format.parser()
  const parser = new LineParser(name, parse, tally)
  try {
    for await (const chunk of chunks) {
      const before = splitter.tooLong
      const records = parser.parse(splitter.push(chunk))
      if (splitter.tooLong > before) parser.skipLong()
      if (records.length > 0) yield records
    }
  } catch (error) {
    if (error instanceof WrongLog) throw new SimulationError(`${name}, line ${parser.lines}: ${error.message}`)
    if (!(error instanceof DamagedLog)) throw error
    tally.noteCaveat(`${error.message}: line ${parser.lines} is the last that was read`)
    tally.isPartial = true
    return
  }
  const last = parser.parseLast(splitter.end())
  if (last) yield [last]
  const caveat = parse.caveat?.()
  if (caveat !== undefined) tally.noteCaveat(`${name} ${caveat}`)
}

class LineParser {
  lines = 0
  readonly #name: string
  readonly #parse: ParseLine
  readonly #tally: Tally

  constructor(name: string, parse: ParseLine, tally: Tally) {
    this.#name = name
    this.#parse = parse
    this.#tally = tally
  }

  /** The records of whole lines. */
  parse(text: string): ParsedLine[] {
    const records: ParsedLine[] = []
    const parse = this.#parse
    const before = this.lines
    for (let at = 0; at < text.length; ) {
      const end = text.indexOf('\n', at)
      const line = text.slice(at, end > at && text.charCodeAt(end - 1) === RETURN ? end - 1 : end)
      at = end + 1
      this.lines++
      if (line === '') continue
      const record = parse(line)
      if (record) records.push(record)
      else if (record === null) this.#tally.noteOther(line)
      else if (record === undefined) this.#tally.noteUnread(this.#name, this.lines, line)
    }
    this.#tally.lines += this.lines - before
    return records
  }

  /** The record of a last line without its break. A half one is being written, and is no mistake of the log. */
  parseLast(line: string): ParsedLine | undefined {
    if (line === '') return undefined
    const record = this.#parse(line)
    if (record === undefined) this.#tally.noteCaveat(`${this.#name} ends in half a line, which was left out`)
    else this.#tally.lines++
    if (record === null) this.#tally.noteOther(line)
    return record || undefined
  }

  skipLong(): void {
    this.lines++
    this.#tally.lines++
    this.#tally.noteUnread(this.#name, this.lines, `(longer than ${MAX_LINE_BYTES} bytes)`)
  }
}

const RETURN = 13
