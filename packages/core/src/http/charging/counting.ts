import type { HttpContext } from '../../request/context.js'
import { invalidPolicy, show } from '../../util/errors.js'
import type { LimiterWarning, Warnings } from '../../util/warnings.js'
import type { Verdict } from '../../verdict/verdict.js'

/**
 * Whether a request counts, by the status of its response. `context` has the framework's `request`, and the `response`, of
 * which `context.getResponseHeader(name)` reads the header fields that were sent.
 */
// biome-ignore lint/suspicious/noExplicitAny: a function that does not look at the request fits every kind of request
export type CountFunction<Request = any> = (status: number, verdict: Verdict, context: HttpContext<Request>) => boolean

/** `'success'`, `'failure'`, or a function. */
// biome-ignore lint/suspicious/noExplicitAny: as above
export type CountOption<Request = any> = keyof typeof COUNTS | CountFunction<Request>

const COUNTS = {
  /** Below 400: 206 and 304 are successes as well, so no `Range` and no `If-None-Match` makes a request free. */
  success: (status: number) => status < 400,
  /** The client's own: 4xx but 429, which another limiter sends. What fails in the server, 5xx, is not the client's doing. */
  failure: (status: number) => status >= 400 && status < 500 && status !== 429,
} satisfies Record<string, CountFunction>

/**
 * A function that never throws: a request whose outcome is not known counts. The response is sent by then, so no error
 * handler can take what a user's function throws.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function countBy(where: string, count: unknown, warnings: Warnings<LimiterWarning>): CountFunction | undefined {
  if (count === undefined) return undefined
  if (count === 'success' || count === 'failure') return COUNTS[count]
  if (typeof count !== 'function') return invalidPolicy(where, 'count', 'a function, "success" or "failure"', count)
  const failed = (what: string) => {
    warnings.emit('SLUICE_COUNT_FAILED', `count: ${what}; the request counts`)
    return true
  }
  return (status, verdict, context) => {
    try {
      const counts: unknown = count(status, verdict, context)
      return typeof counts === 'boolean' ? counts : failed(`expected true or false, got ${show(counts)}`)
    } catch (error) {
      return failed(error instanceof Error ? error.message : String(error))
    }
  }
}
