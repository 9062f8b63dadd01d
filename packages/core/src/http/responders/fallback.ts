import { invalidPolicy } from '../../util/errors.js'
import { refuseFactory } from '../../util/factories.js'
import type { Verdict } from '../../verdict/verdict.js'
import { type RejectOptions, reject } from './reject.js'
import { type Action, isLater, type Refused, type Responder } from './responder.js'

/** Checks an option that is another responder; where there is none, it is `reject`. */
export function fallback<Request>(
  where: string,
  field: string,
  responder: unknown,
  options: RejectOptions<Request> = {},
): Responder<Request> {
  if (responder === undefined) return reject(options)
  if (typeof responder !== 'function') invalidPolicy(where, field, 'a responder such as reject()', responder)
  refuseFactory(where, field, responder)
  return responder as Responder<Request>
}

/** What responds in place of a responder while the store is away. */
export function whenUnavailableOf<Request>({ whenUnavailable }: Responder<Request>): Responder<Request> {
  return whenUnavailable ?? reject<Request>()
}

/** Responds with another responder, under another verdict. */
export async function respondWith<Request>(
  responder: Responder<Request>,
  refused: Refused<Request>,
  verdict: Verdict,
): Promise<Action> {
  const chosen = verdict.reason === 'unavailable' ? whenUnavailableOf(responder) : responder
  const action = await chosen({ ...refused, verdict })
  return isLater(action) || verdict === refused.verdict ? action : { verdict, ending: action }
}
