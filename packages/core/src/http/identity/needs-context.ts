import type { HttpContext } from '../../request/context.js'
import { SluiceError } from '../../util/errors.js'

/** Key functions of HTTP requests say so themselves when a limiter without requests calls them. */
export function needsContext<Subject>(name: string, context: HttpContext<Subject> | undefined): HttpContext<Subject> {
  if (context) return context
  throw new SluiceError(
    'INVALID_KEY',
    `${name}: expected an HTTP request, got none (outside of rateLimit, leave out key and pass the key itself)`,
  )
}
