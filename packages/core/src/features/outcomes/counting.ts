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

/**
 * Responses by their status: `'success'` (below 400), `'failure'` (4xx except 429), a status such as `401`, or those for
 * which a function returns true.
 */
// biome-ignore lint/suspicious/noExplicitAny: as above
export type CountOnly<Request = any> = keyof typeof COUNTS | number | CountFunction<Request>

/** The requests that count, by the status of their response. */
// biome-ignore lint/suspicious/noExplicitAny: as above
export interface CountOptions<Request = any> {
  readonly only: CountOnly<Request>
  /** Maximum time that a request waits for the outcome of others; then it is refused. `Infinity`: no bound. @default '5s' */
  readonly within?: Duration
}

/** The option `count`, checked. */
export interface CheckedCount {
  readonly counts: CountFunction
  readonly withinMs: number
}

const COUNTS = {
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
  const where = `${ofPolicy}: count`
  const { only, within = 5000 } = countOptions<CountOptions>(ofPolicy, 'count', count, ['only', 'within'])
  // A request whose outcome is unknown counts.
  const failed = (what: string) => {
    warnings.emit('SLUICE_COUNT_FAILED', `count: ${what}; the request counts`)
    return true
  }
  return { counts: countsOnly(where, only, failed), withinMs: waitOrNever(where, 'within', within) }
}

/** @throws SluiceError `INVALID_POLICY` */
export function countOptions<Options>(ofPolicy: string, option: string, given: unknown, known: string[]): Options {
  if (typeof given !== 'object' || given === null) {
    const isWord = typeof given === 'string' || typeof given === 'number'
    const shown = isWord ? show(given) : typeof given === 'function' ? 'status => boolean' : '"failure"'
    invalidPolicy(ofPolicy, option, `{ ${known.join(', ')} }, such as { only: ${shown} }`, given)
  }
  knownOptions(`${ofPolicy}: ${option}`, given, known)
  return given as Options
}

/**
 * Whether a response counts, by the option `only`. `failed` says whether it does where a function fails.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function countsOnly(where: string, only: unknown, failed: (what: string) => boolean): CountFunction {
  if (only === 'success' || only === 'failure') return COUNTS[only]
  if (typeof only === 'function') return withoutErrors(only as CountFunction, failed)
  if (Number.isInteger(only) && (only as number) >= 100 && (only as number) <= 599) return (status) => status === only
  return invalidPolicy(where, 'only', '"success", "failure", a status such as 401, or a function', only)
}

/** Wraps a function so that it never throws: the response is sent by then, so no error handler could take the error. */
function withoutErrors(count: CountFunction, failed: (what: string) => boolean): CountFunction {
  return (status, verdict, context) => {
    try {
      const counts: unknown = count(status, verdict, context)
      return typeof counts === 'boolean' ? counts : failed(`expected true or false, got ${show(counts)}`)
    } catch (error) {
      return failed(error instanceof Error ? error.message : String(error))
    }
  }
}
