import { SluiceError } from '@sluice/core'
import { beginAtCaller } from '@sluice/core/internal'
import { type LocatedProblem, lineOf } from './problem.js'
import { withoutClients } from './without-clients.js'

/** A document that is not in use, with all its problems. */
export class PoliciesError extends SluiceError {
  readonly problems: readonly LocatedProblem[]

  constructor(problems: readonly LocatedProblem[]) {
    super('INVALID_POLICY', problems.map(lineOf).join('\n'))
    this.problems = problems
    beginAtCaller(this)
  }

  /** @internal The message without the clients that differences between documents hide: the console shows it to its readers. */
  get messageWithoutClients(): string {
    return this.problems.map((problem) => lineOf(withoutClients(problem))).join('\n')
  }
}
