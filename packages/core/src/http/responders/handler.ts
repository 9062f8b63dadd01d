import { invalidPolicy } from '../../util/errors.js'
import { refusalStatus } from './problem.js'
import type { Handover, NativeHandler, Refused, Responder } from './responder.js'

/**
 * What an adapter's `handler` returns: a responder that has the adapter call `handler` with what its framework hands to
 * handlers, and the verdict.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function respondByHandler<Request>(handler: NativeHandler): Responder<Request> {
  if (typeof handler !== 'function') invalidPolicy('handler', 'handler', 'a function', handler)
  function handOver({ verdict }: Refused<Request>): Handover {
    return { to: handler, status: refusalStatus(verdict, 429) }
  }
  return Object.assign(handOver, { whenUnavailable: handOver })
}
