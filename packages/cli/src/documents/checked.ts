import { textOfFile } from '@sluice/core/internal'
import { findingsIn, type LocatedProblem, lineOf } from '@sluice/policies'
import type { Environment } from '../program/environment.js'
import { UsageError } from '../program/usage-error.js'

/**
 * The text of a document in a file; undefined, with every mistake reported, where it is wrong. Reports warnings, too.
 *
 * @throws UsageError where it cannot be read
 */
export function checkedDocument(file: string, { stderr }: Environment): string | undefined {
  const text = textOfFile(file, UsageError)
  const { problems, advice } = findingsIn(text, file, 'any')
  for (const each of [...problems, ...advice.map(asWarning)]) stderr.write(`${lineOf(each)}\n`)
  return problems.length === 0 ? text : undefined
}

/** Advice on a field that may be misunderstood, as the line of a report. */
export function asWarning(advice: LocatedProblem): LocatedProblem {
  return { ...advice, message: `warning: ${advice.message}` }
}
