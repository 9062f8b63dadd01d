import { invalidPolicy } from '../errors.js'
import { headerName, knownOptions, limitOption, optionalFunction, windowOption } from './checks.js'
import type { Algorithm, CommonOptions, Limit, OrFunction, Resolution } from './limit.js'

export interface RateOptions<Subject> extends CommonOptions<Subject> {
  /** Units per window; whole, 0 or more. 0 refuses everything. */
  readonly limit: OrFunction<number, Subject>
  /** Whole milliseconds or a duration such as `'1m'`. */
  readonly window: OrFunction<number | string, Subject>
}

/** The part that all constructors share: checks what is common, and freezes. */
export function makeLimit<Subject>(
  algorithm: Algorithm,
  options: RateOptions<Subject>,
  extraOptions: readonly string[],
  resolve: (where: string, limit: number, windowMs: number) => Resolution,
): Limit<Subject> {
  knownOptions(algorithm, options, ['name', 'limit', 'window', 'key', 'respond', ...extraOptions])
  optionalFunction(algorithm, 'key', options.key)
  if (options.respond !== undefined && typeof options.respond !== 'function') {
    invalidPolicy(algorithm, 'respond', 'a responder such as reject()', options.respond)
  }
  if (options.name !== undefined) headerName(algorithm, 'name', options.name)
  const limit = limitOption(algorithm, options.limit)
  const window = windowOption<Extract<typeof options.window, (...args: never) => unknown>>(algorithm, options.window)
  // With both known now, numbers that could round are refused now.
  if (typeof limit === 'number' && typeof window === 'number') resolve(algorithm, limit, window)
  return Object.freeze({
    algorithm,
    limit,
    window,
    resolve,
    ...(options.key && { key: options.key }),
    ...(options.respond && { respond: options.respond }),
    ...(options.name !== undefined && { name: options.name }),
  })
}
