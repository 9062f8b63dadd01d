import { invalidPolicy } from '../../errors.js'
import type { Responder } from './responder.js'

/** Checks the option `then` that several responders have. */
export function fallback<Request>(where: string, then: unknown): Responder<Request> {
  if (typeof then !== 'function') invalidPolicy(where, 'then', 'a responder such as reject()', then)
  return then as Responder<Request>
}
