import type { GuardBasis, GuardFeature, GuardPart, PassingRequest, Step } from '../../http/guard/guard-feature.js'
import type { HandleInvalid } from '../../http/guard/invalid.js'
import type { Responders } from '../../http/responders/choice.js'
import { isDisabled } from '../../http/response/disabled-response.js'
import { propertyOf } from '../../util/property-of.js'
import type { Verdict } from '../../verdict/verdict.js'
import type { BanOption } from './ban-terms.js'
import { bansFor, type RequestBans } from './request-bans.js'

const UNSTRUCK = Object.freeze({ strikes: false })

/** Bans, for requests: their refusals, their outcomes and traps are strikes. */
export const requestBans: GuardFeature = {
  responders: ({ ban }: BanOption<never>) => ({ banned: ban?.respond }),
  guard<Request>(basis: GuardBasis<Request>, options: object): GuardPart<Request> | undefined {
    const { where, engine, warnings, responders, handleInvalid, isFinal } = basis
    const bans = bansFor(where, options, engine, warnings, isFinal)
    if (!bans) return undefined
    const caught = new WeakSet<PassingRequest<Request>>()
    return {
      before: [look(bans, caught, handleInvalid)],
      needsOf: (known) => (bans.mayCatch(known) ? ['trap'] : []),
      after: [strikeTrapped(bans, caught), strikeRefusal(bans, responders)],
      onlyDecides: (context) => bans.strikesAtOnce(context),
      optionsFor: (context) => (bans.strikesAtOnce(context) ? undefined : UNSTRUCK),
      proceeds: (context, verdict) => bans.countLater(context, verdict),
      refusedAfterWait: (context, refusal) => bans.strike(context, refusal),
      cut: (context, refusal) => bans.strikeLater(context, refusal),
    }
  },
}

/** Notes whether a trap catches a request, before anything is charged. */
function look<Request>(
  bans: RequestBans<Request>,
  caught: WeakSet<PassingRequest<Request>>,
  handleInvalid: HandleInvalid<Request>,
): Step<Request> {
  return (request) => {
    const { context, units, verdict } = request
    if (verdict || isDisabled(context.response)) return undefined
    try {
      if (bans.catches(context)) caught.add(request)
      return undefined
    } catch (error) {
      return handleInvalid(error, units, context)
    }
  }
}

/** A request that a trap catches is a strike. If that begins a ban, the request is refused. */
function strikeTrapped<Request>(bans: RequestBans<Request>, caught: WeakSet<PassingRequest<Request>>): Step<Request> {
  return (request) => {
    const { context, verdict, isEnforced, ending } = request
    if (!verdict || !isEnforced || ending || !caught.has(request)) return undefined
    return replacing(request, bans.strikeTrapped(context, verdict))
  }
}

/** A final refusal is a strike, unless the store has counted it. A ban that it starts becomes its reason. */
function strikeRefusal<Request>(bans: RequestBans<Request>, responders: Responders<Request>): Step<Request> {
  return (request) => {
    const { context, verdict, isEnforced, ending } = request
    if (!verdict || verdict.allowed || !isEnforced || ending) return undefined
    // A request that waits may still be admitted.
    if (propertyOf(responders.for(verdict), 'queues')) return undefined
    return replacing(request, bans.strike(context, verdict))
  }
}

/** The verdict of a strike replaces that of its request. */
function replacing<Request>(
  request: PassingRequest<Request>,
  struck: Promise<Verdict> | undefined,
): Promise<undefined> | undefined {
  return struck?.then((last) => {
    request.verdict = last
    return undefined
  })
}
