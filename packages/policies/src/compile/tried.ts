import { SluiceError } from '@sluice/core'
import type { Path, Problem } from '../problems/problem.js'

const FIELD = /^([A-Za-z]+)(?:\[(\d+)\])?: (.+)$/s

/**
 * The result of a constructor, or undefined, with a problem, where it refuses. Its messages are of the form `slidingLog: limit:
 * expected …` or `ban: for[1]: expected …`: fields are part of the path then.
 */
export function tried<Made>(path: Path, problems: Problem[], make: () => Made): Made | undefined {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    const [, text = error.message] = /^[^:]+: (.+)$/s.exec(error.message) ?? []
    const within = [...path]
    let message = text
    for (let part = FIELD.exec(message); part; part = FIELD.exec(message)) {
      const [, field = '', index, rest = ''] = part
      within.push(field, ...(index === undefined ? [] : [Number(index)]))
      message = rest
    }
    // A message that expects none is about the field itself.
    problems.push({ path: within, message, isField: message.startsWith('expected none') })
    return undefined
  }
}
