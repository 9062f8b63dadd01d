/** A fault of a file, with its line; the first line is 1. */
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
