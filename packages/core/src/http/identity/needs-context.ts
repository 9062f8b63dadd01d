import type { HttpContext } from '../../request/context.js'
import { SluiceError } from '../../util/errors.js'

/** The context of a key function for HTTP requests. Throws where a limiter without requests calls the function. */
export function needsContext<Subject>(name: string, context: HttpContext<Subject> | undefined): HttpContext<Subject> {
  if (context) return context
  throw new SluiceError(
    'INVALID_KEY',
    `${name}: expected an HTTP request, got none (outside of rateLimit, leave out key and pass the key itself)`,
  )
}
