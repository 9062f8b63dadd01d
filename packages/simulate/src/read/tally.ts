import { escapeControls } from '@sluice/core/internal'

const MAX_EXAMPLES = 5
const MAX_EXAMPLE_LENGTH = 200

/** What became of the lines of all logs. */
export class Tally {
  lines = 0
  unread = 0
  /** Lines that are no requests by their form. */
  others = 0
  /** The first lines that did not parse, escaped and cut. */
  readonly examples: string[] = []
  /** Sentences about logs that are empty, or whose rest could not be read. */
  readonly caveats: string[] = []
  isPartial = false

  noteCaveat(text: string): void {
    this.caveats.push(`${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`)
  }

  /** Headers of a log are no matter of its requests. */
  noteOther(line: string): void {
    if (!line.startsWith('#')) this.others++
  }

  noteUnread(name: string, lineNumber: number, line: string): void {
    this.unread++
    if (this.examples.length >= MAX_EXAMPLES) return
    const cut = line.length > MAX_EXAMPLE_LENGTH ? `${line.slice(0, MAX_EXAMPLE_LENGTH)}…` : line
    this.examples.push(`${name}, line ${lineNumber}: ${escapeControls(cut)}`)
  }
}
