import { invalidPolicy } from '../../util/errors.js'
import { knowFactories } from '../../util/factories.js'
import { knownOptions } from '../../util/validate.js'
import { type RefusalStatus, refusalStatus } from './problem.js'
import type { Handover, NativeHandler, Refused, Responder } from './responder.js'

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
  return handOver('error-handler', status)
}

/**
 * What an adapter's `handler` returns: a responder that has the adapter call `handler` with what its framework hands to
 * handlers, and the verdict.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function respondByHandler<Request>(handler: NativeHandler): Responder<Request> {
  if (typeof handler !== 'function') invalidPolicy('handler', 'handler', 'a function', handler)
  return handOver(handler, 429)
}

function handOver<Request>(to: Handover['to'], status: RefusalStatus): Responder<Request> {
  const responder = ({ verdict }: Refused<Request>): Handover => ({ to, status: refusalStatus(verdict, status) })
  return Object.assign(responder, { whenUnavailable: responder })
}

knowFactories({ 'pass()': pass })
