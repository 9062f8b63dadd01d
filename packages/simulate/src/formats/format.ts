import type { LineReader, ParsedLine } from './parsed-line.js'

/** A log that this program cannot read, or cannot read with others. The message follows the name of the log. */
export class WrongLog extends Error {}

/** Reads the lines of one log. */
export interface ParseLine {
  /**
   * The record of a line, null for one that is no request by its format, undefined for one that does not parse. False for one
   * that another line completes.
   *
   * @throws WrongLog
   */
  (line: string): ParsedLine | null | undefined | false
  /** What is to be said of the lines that were read. It follows the name of the log. */
  readonly caveat?: () => string | undefined
}

/** A form of access logs. */
export interface LogFormat {
  readonly name: string
  /** The field with the client's address. Undefined where its lines have none. */
  readonly client: string | undefined
  /** Whether these first lines are of this form: at least one, without empty ones. */
  detect(lines: readonly string[]): boolean
  /** Makes the parser of one file. It may keep state between its lines, such as the last date. */
  parser(): ParseLine
  /** Names whose clients these first lines know. Logs of different ones have no client in common. */
  clients?(lines: readonly string[]): string | undefined
  /** What finds more in lines that a parser has read, behind a line that names their fields. */
  reader(head: string): LineReader
}

/** Whether most of these lines are requests of a form, those left out that are none by it. */
export function mostParse(lines: readonly string[], parse: ParseLine): boolean {
  let requests = 0
  let others = 0
  for (const line of lines) {
    const record = parse(line)
    if (record) requests++
    else if (record === undefined) others++
  }
  return requests > others
}
