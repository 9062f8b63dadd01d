import type { HttpContext } from '../../request/context.js'
import { type Duration, waitOrNever } from '../../util/duration.js'
import { invalidPolicy, show } from '../../util/errors.js'
import { knownOptions } from '../../util/validate.js'
import type { LimiterWarning, Warnings } from '../../util/warnings.js'
import type { Verdict } from '../../verdict/verdict.js'

/**
 * Whether a request counts, by the status of its response. `context` has the framework's `request` and `response`;
 * `context.getResponseHeader(name)` reads the header fields that were sent.
 */
// biome-ignore lint/suspicious/noExplicitAny: a function that does not look at the request fits every kind of request
export type CountFunction<Request = any> = (status: number, verdict: Verdict, context: HttpContext<Request>) => boolean

/** The requests that count, by the status of their response. */
// biome-ignore lint/suspicious/noExplicitAny: as above
export interface CountOptions<Request = any> {
  /** `'success'` counts statuses below 400, `'failure'` 4xx except 429, a function those for which it returns true. */
  readonly only: keyof typeof COUNTS | CountFunction<Request>
  /** Maximum time that a request waits for the outcome of others; then it is refused. `Infinity`: no bound. @default '5s' */
  readonly within?: Duration
}

/** The option `count`, checked. */
export interface CheckedCount {
  readonly counts: CountFunction
  readonly withinMs: number
}

export const COUNTS = {
  /** Below 400: 206 and 304 are successes as well, so no `Range` and no `If-None-Match` makes a request free. */
  success: (status: number) => status < 400,
  /** Errors of the client: 4xx except 429, which another limiter sends. A 5xx is an error of the server. */
  failure: (status: number) => status >= 400 && status < 500 && status !== 429,
} satisfies Record<string, CountFunction>

/** @throws SluiceError `INVALID_POLICY` */
export function countFor(
  ofPolicy: string,
  count: unknown,
  warnings: Warnings<LimiterWarning>,
): CheckedCount | undefined {
  if (count === undefined) return undefined
  // These are the forms of other options for outcomes, such as `ban.count`.
  if (typeof count === 'string' || typeof count === 'function') {
    const shown = typeof count === 'string' ? show(count) : 'status => boolean'
    invalidPolicy(ofPolicy, 'count', `{ only, within }, such as { only: ${shown} }`, count)
  }
  const where = `${ofPolicy}: count`
  knownOptions(where, count, ['only', 'within'])
  const { only, within = 5000 } = count as CountOptions
  // A request whose outcome is unknown counts.
  const failed = (what: string) => {
    warnings.emit('SLUICE_COUNT_FAILED', `count: ${what}; the request counts`)
    return true
  }
  if (only !== 'success' && only !== 'failure' && typeof only !== 'function') {
    return invalidPolicy(where, 'only', 'a function, "success" or "failure"', only)
  }
  return {
    counts: typeof only === 'function' ? withoutErrors(only, failed) : COUNTS[only],
    withinMs: waitOrNever(where, 'within', within),
  }
}

/**
 * Wraps a function so that it never throws: the response is sent by then, so no error handler could take the error.
 * `failed` says whether the request counts then.
 */
export function withoutErrors(count: CountFunction, failed: (what: string) => boolean): CountFunction {
  return (status, verdict, context) => {
    try {
      const counts: unknown = count(status, verdict, context)
      return typeof counts === 'boolean' ? counts : failed(`expected true or false, got ${show(counts)}`)
    } catch (error) {
      return failed(error instanceof Error ? error.message : String(error))
    }
  }
}
