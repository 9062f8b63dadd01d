import { invalidPolicy } from '../../util/errors.js'
import { knowFactories } from '../../util/factories.js'
import { knownOptions } from '../../util/validate.js'
import { type RefusalStatus, refusalStatus } from './problem.js'
import type { Handover, Refused, Responder } from './responder.js'

export interface PassOptions {
  /** As for `reject`: what a list denies is always 403; blocks, and costs that can never fit, are always 429; a refusal since nothing could decide is always 503. @default 429 */
  readonly status?: RefusalStatus
}

/**
 * Hands a refused request to the framework's error handling, so that refusals look like the application's other errors: a
 * `RateLimitError` goes to `next` in Express and to `setErrorHandler` in Fastify, and is thrown in Koa. Quota headers,
 * `Retry-After` and `Cache-Control: no-store` are on the response by then, and in the error's `headers`.
 *
 * @example app.use(rateLimit({ limit: 100, window: '1m', respond: pass() }))
 * @throws SluiceError `INVALID_POLICY`
 */
export function pass<Request>(options: PassOptions = {}): Responder<Request> {
  knownOptions('pass', options, ['status'])
  const { status = 429 } = options
  if (status !== 429 && status !== 503) invalidPolicy('pass', 'status', '429 or 503', status)
  function pass({ verdict }: Refused<Request>): Handover {
    return { to: 'error-handler', status: refusalStatus(verdict, status) }
  }
  return Object.assign(pass, { whenUnavailable: pass })
}

knowFactories({ 'pass()': pass })
