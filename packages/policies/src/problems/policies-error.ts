import { SluiceError } from '@sluice/core'
import { type LocatedProblem, lineOf } from './problem.js'

/** A document that is not in use, with all its problems. */
export class PoliciesError extends SluiceError {
  readonly problems: readonly LocatedProblem[]

  constructor(problems: readonly LocatedProblem[]) {
    super('INVALID_POLICY', problems.map(lineOf).join('\n'))
    this.problems = problems
  }
}
