import { invalidPolicy } from '../../errors.js'
import { type RejectOptions, reject } from './reject.js'
import type { Responder } from './responder.js'

/** Checks an option that is another responder; where there is none, it is `reject`. */
export function fallback<Request>(
  where: string,
  field: string,
  responder: unknown,
  options: RejectOptions<Request> = {},
): Responder<Request> {
  if (responder === undefined) return reject(options)
  if (typeof responder !== 'function') invalidPolicy(where, field, 'a responder such as reject()', responder)
  return responder as Responder<Request>
}
