import { lineOf, problemsIn } from '@sluice/policies'
import type { Environment } from '../program/environment.js'
import { textOfFile } from './file.js'

/**
 * The text of a document in a file; undefined, with every mistake reported, where it is wrong.
 *
 * @throws UsageError where it cannot be read
 */
export function checkedDocument(file: string, { stderr }: Environment): string | undefined {
  const text = textOfFile(file)
  const problems = problemsIn(text, file, 'any')
  for (const problem of problems) stderr.write(`${lineOf(problem)}\n`)
  return problems.length === 0 ? text : undefined
}
