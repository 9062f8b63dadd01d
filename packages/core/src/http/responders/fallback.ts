import { invalidPolicy } from '../../util/errors.js'
import { refuseFactory } from '../../util/factories.js'
import { propertyOf } from '../../util/property-of.js'
import type { Verdict } from '../../verdict/verdict.js'
import { type RejectOptions, reject } from './reject.js'
import { type Action, isLater, type Refused, type Responder, type TurnOptions } from './responder.js'
import type { Semaphore } from './semaphore.js'

/** Checks an option that is another responder; `reject` is its default. */
export function fallback<Request>(
  where: string,
  field: string,
  responder: unknown,
  options: RejectOptions<Request> = {},
): Responder<Request> {
  return responder === undefined ? reject(options) : checkedResponder(where, field, responder)
}

/** The option `otherwise` of a responder that waits. A second wait would only be a longer first one. */
export function otherwiseOfWaiting<Request>(
  where: string,
  responder: unknown,
  options?: RejectOptions<Request>,
): Responder<Request> {
  const otherwise = fallback(where, 'otherwise', responder, options)
  if (propertyOf(otherwise, 'queues')) invalidPolicy(where, 'otherwise', WITHOUT_QUEUE, otherwise)
  return otherwise
}

const WITHOUT_QUEUE = 'a responder that does not queue, such as reject()'

/** @throws SluiceError `INVALID_POLICY` */
export function checkedResponder<Request>(where: string, field: string, responder: unknown): Responder<Request> {
  if (typeof responder !== 'function') invalidPolicy(where, field, 'a responder such as reject()', responder)
  refuseFactory(where, field, responder)
  return responder as Responder<Request>
}

/** @throws SluiceError `INVALID_POLICY` */
export function checkedWithoutQueue<Request>(where: string, field: string, responder: unknown): Responder<Request> {
  if (typeof responder === 'function' && !propertyOf(responder as Responder<Request>, 'queues')) {
    return responder as Responder<Request>
  }
  invalidPolicy(where, field, WITHOUT_QUEUE, responder)
}

/** The responder that replaces another while the store is away. */
export function whenUnavailableOf<Request>(responder: Responder<Request>): Responder<Request> {
  return propertyOf(responder, 'whenUnavailable') ?? reject<Request>()
}

/** Calls another responder with another verdict. */
async function respondWith<Request>(
  responder: Responder<Request>,
  refused: Refused<Request>,
  verdict: Verdict,
): Promise<Action> {
  const chosen = verdict.reason === 'unavailable' ? whenUnavailableOf(responder) : responder
  const action = await chosen({ ...refused, verdict })
  return isLater(action) || verdict === refused.verdict ? action : { verdict, ending: action }
}

/** Makes a refused request wait for its turn, holding `semaphore`. `otherwise` responds to requests that stay refused. */
export async function waitOr<Request>(
  otherwise: Responder<Request>,
  semaphore: Semaphore,
  refused: Refused<Request>,
  turn: () => Promise<TurnOptions>,
): Promise<Action> {
  const { verdict } = refused
  if (verdict.reason !== 'limited' || !semaphore.tryAcquire()) return respondWith(otherwise, refused, verdict)
  try {
    const late = await refused.waitTurn(await turn())
    if (late === 'gone') return late
    return late.allowed ? { verdict: late, ending: 'proceed' } : await respondWith(otherwise, refused, late)
  } finally {
    semaphore.release()
  }
}
