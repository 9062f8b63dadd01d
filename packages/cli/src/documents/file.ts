import { readFileSync } from 'node:fs'
import { UsageError } from '../program/usage-error.js'

/**
 * The text of a file that an argument names.
 *
 * @throws UsageError where it cannot be read, or is no text in UTF-8
 */
export function textOfFile(file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    if (error instanceof TypeError) throw new UsageError(`${JSON.stringify(file)}: expected text in UTF-8`)
    throw new UsageError(`cannot read ${JSON.stringify(file)} (${(error as NodeJS.ErrnoException).code})`)
  }
}
