import { invalidPolicy } from '../../util/errors.js'
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
  return responder as Responder<Request>
}

/** Who answers for a responder where nothing could decide. */
export function whenUnavailableOf<Request>({ whenUnavailable }: Responder<Request>): Responder<Request> {
  return whenUnavailable ?? reject<Request>()
}

/** Answers with another responder, under another verdict. */
export async function answerWith<Request>(
  responder: Responder<Request>,
  refused: Refused<Request>,
  verdict: Verdict,
): Promise<Action> {
  const answering = verdict.reason === 'unavailable' ? whenUnavailableOf(responder) : responder
  const action = await answering({ ...refused, verdict })
  return isLater(action) || verdict === refused.verdict ? action : { verdict, ending: action }
}
