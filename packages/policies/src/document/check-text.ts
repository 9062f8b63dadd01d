import type { LocatedProblem, Problem } from '../problems/problem.js'
import { checkSchema } from '../schema/check.js'
import { locatedBy, readText } from './read.js'

/** A document to read. Plain data, so that it can be posted to a thread. */
export interface TextToCheck {
  /** Its name in problems. */
  readonly name: string
  readonly text: string
  /** Known problems of the document, to be located. */
  readonly toLocate?: readonly Problem[]
}

export interface CheckedText {
  readonly value: unknown
  /** The problems of its form, or the locations of `toLocate`. */
  readonly problems: readonly LocatedProblem[]
}

/** Reads a document, and checks its form. */
export function checkText({ name, text, toLocate }: TextToCheck): CheckedText {
  const { value, problems, locate } = readText(text)
  const located = locatedBy(name, locate)
  if (toLocate) return { value: undefined, problems: located(toLocate) }
  return { value, problems: located(problems.length > 0 ? problems : checkSchema(value)) }
}
