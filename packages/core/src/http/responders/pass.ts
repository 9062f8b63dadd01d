import { invalidPolicy } from '../../util/errors.js'
import { knowFactories } from '../../util/factories.js'
import { knownOptions } from '../../util/validate.js'
import { type RefusalStatus, refusalStatus } from './problem.js'
import type { Handover, NativeHandler, Refused, Responder } from './responder.js'

export interface PassOptions {
  /**
   * As for `reject`.
   *
   * List denials are always 403. Blocks, and costs that can never fit, are always 429. A refusal because nothing could
   * decide is always 503.
   * @default 429
   */
  readonly status?: RefusalStatus
}

/**
 * Passes a refused request to the framework's error handling, so that refusals look like the application's other errors. A
 * `RateLimitError` goes to `next` in Express and to `setErrorHandler` in Fastify, and is thrown in Koa. The response has
 * quota headers, `Retry-After` and `Cache-Control: no-store` by then; they are also in the error's `headers`.
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
 * The return value of an adapter's `handler`: a responder that makes the adapter call `handler` with the arguments of the
 * framework's handlers, and the verdict.
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
