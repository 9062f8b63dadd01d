import { SluiceError } from '@sluice/core'
import type { Path, Problem } from '../document/problem.js'

/**
 * What a constructor makes; undefined, with a problem, where it refuses. Its messages are of the form
 * `slidingLog: limit: expected …`: the field is part of the path then.
 */
export function tried<Made>(path: Path, problems: Problem[], make: () => Made): Made | undefined {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    const [, field, message = error.message] = /^[^:]+: ([A-Za-z]+): (.+)$/s.exec(error.message) ?? []
    // What is wrong with it is that it is there.
    const isField = message.startsWith('expected none')
    problems.push({ path: field === undefined ? path : [...path, field], message, isField })
    return undefined
  }
}
