import { invalidPolicy } from '../../util/errors.js'
import { checkedWithoutQueue, whenUnavailableOf } from './fallback.js'
import { type Refused, type Responder, type ResponderTraits, traitsOf } from './responder.js'

/**
 * Responds to each ban by its rung: the first responder to bans of the first rung, and so on; the last to all further rungs.
 * The first also responds to refusals without a ban. For `ban: { respond }`.
 *
 * @example ban: { after: 10, within: '10m', for: ['10m', '1h', '1d'], respond: escalate([reject(), tarpit(), shadow()]) }
 * @throws SluiceError `INVALID_POLICY`
 */
export function escalate<Request>(responders: readonly Responder<Request>[]): Responder<Request> {
  if (!Array.isArray(responders) || responders.length === 0) {
    invalidPolicy('escalate', 'responders', 'an array of responders, such as [reject(), tarpit()]', responders)
  }
  const all = Array.from(responders, (each, i) => checkedWithoutQueue<Request>('escalate', `responders[${i}]`, each))
  const escalated = (refused: Refused<Request>) => {
    const rung = refused.verdict.ban?.rung ?? 1
    const responder = all[Math.min(rung, all.length) - 1] as Responder<Request>
    return responder(refused)
  }
  const traits = all.map((each): ResponderTraits<Request> => traitsOf(each))
  return Object.assign(escalated, {
    whenUnavailable: whenUnavailableOf(all[0] as Responder<Request>),
    hidesQuota: traits.some(({ hidesQuota }) => hidesQuota === true),
    deceives: traits.some(({ deceives }) => deceives === true),
    degrades: traits.some(({ degrades }) => degrades === true),
  })
}
