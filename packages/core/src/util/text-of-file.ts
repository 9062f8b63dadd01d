import { readFileSync } from 'node:fs'

/**
 * The text of a file that an argument names.
 *
 * @throws `Wrong` where it cannot be read, or is no text in UTF-8
 */
export function textOfFile(file: string, Wrong: new (message: string) => Error): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    if (error instanceof TypeError) throw new Wrong(`${JSON.stringify(file)}: expected text in UTF-8`)
    throw new Wrong(`cannot read ${JSON.stringify(file)} (${(error as NodeJS.ErrnoException).code})`)
  }
}
