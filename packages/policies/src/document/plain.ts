import type { Path, Problem } from '../problems/problem.js'

/** The deepest nesting of values. Documents need nine levels, and the body of a response a few more. */
export const MAX_DEPTH = 32
/** Most values in one document that is given as an object. */
const MAX_VALUES = 2_000_000

/** A copy of a value of a document that was given as an object: later changes of it do not change the policies. */
export function plainCopy(value: unknown): { value: unknown; problem?: Problem } {
  let left = MAX_VALUES
  const copy = (from: unknown, path: Path): unknown => {
    if (path.length > MAX_DEPTH) throw new Unusable({ path, message: `expected at most ${MAX_DEPTH} levels` })
    if (--left < 0) throw new Unusable({ path: [], message: `expected at most ${MAX_VALUES} values` })
    if (Array.isArray(from)) return from.map((item, i) => copy(item, [...path, i]))
    if (typeof from !== 'object' || from === null) return from
    // A map or a date would be copied as an empty object, without its policies.
    const [, form] = /^\[object (\w+)\]$/.exec(Object.prototype.toString.call(from)) ?? []
    if (form !== 'Object')
      throw new Unusable({ path, message: `expected plain data, as JSON may hold it, got a ${form}` })
    const to: Record<string, unknown> = Object.create(null)
    for (const [field, item] of Object.entries(from)) if (item !== undefined) to[field] = copy(item, [...path, field])
    return to
  }
  try {
    return { value: copy(value, []) }
  } catch (error) {
    if (error instanceof Unusable) return { value: undefined, problem: error.problem }
    return { value: undefined, problem: { path: [], message: 'expected plain data, as JSON may hold it' } }
  }
}

/** Ends a walk at the first value that cannot be used. */
export class Unusable extends Error {
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.message)
    this.problem = problem
  }
}
