/** What is wrong with a file, and on which line; the first line is 1. */
export class FileFault extends Error {
  readonly line: number | undefined

  constructor(line: number | undefined, message: string) {
    super(message)
    this.line = line
  }
}

/** The line of a position in a text. */
export function lineAt(text: string, position: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at >= 0 && at < position; at = text.indexOf('\n', at + 1)) line++
  return line
}

/** Each line of a text and its number, without what ends it. */
export function* linesOf(text: string): Generator<[line: string, number: number]> {
  for (let start = 0, number = 1; start <= text.length; number++) {
    const end = text.indexOf('\n', start)
    const line = end < 0 ? text.slice(start) : text.slice(start, end)
    yield [line.endsWith('\r') ? line.slice(0, -1) : line, number]
    if (end < 0) return
    start = end + 1
  }
}
