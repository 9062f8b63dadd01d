import { invalidPolicy } from '../../util/errors.js'
import type { Verdict } from '../../verdict/verdict.js'

/** Whether a request counts, by the status of its response. */
export type CountFunction = (status: number, verdict: Verdict) => boolean

/** `'success'`, `'failure'`, or a function. */
export type CountOption = keyof typeof COUNTS | CountFunction

const COUNTS = {
  /** Below 400: 206 and 304 are successes as well, so no `Range` and no `If-None-Match` makes a request free. */
  success: (status: number) => status < 400,
  /** The client's own: 4xx but 429, which another limiter sends. What fails in the server, 5xx, is not the client's doing. */
  failure: (status: number) => status >= 400 && status < 500 && status !== 429,
} satisfies Record<string, CountFunction>

/** @throws SluiceError `INVALID_POLICY` */
export function countBy(where: string, count: unknown): CountFunction | undefined {
  if (count === undefined || typeof count === 'function') return count as CountFunction | undefined
  if (count === 'success' || count === 'failure') return COUNTS[count]
  return invalidPolicy(where, 'count', 'a function, "success" or "failure"', count)
}
