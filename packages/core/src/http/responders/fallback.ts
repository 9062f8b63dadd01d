import { invalidPolicy } from '../../errors.js'
import type { Responder } from './responder.js'

/** Checks an option that is another responder. */
export function fallback<Request>(where: string, field: string, responder: unknown): Responder<Request> {
  if (typeof responder !== 'function') invalidPolicy(where, field, 'a responder such as reject()', responder)
  return responder as Responder<Request>
}
