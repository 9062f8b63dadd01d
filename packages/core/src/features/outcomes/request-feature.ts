import type { GuardFeature, Step } from '../../http/guard/guard-feature.js'
import { endIfAnswered, replyOutcome } from '../../http/guard/outcome.js'
import type { Verdict } from '../../verdict/verdict.js'
import { type Charging, type ChargingOptions, chargingFor } from './charging.js'

/** Charges by the outcome of a request, and by its body: `count` and `body`. */
export const outcomes: GuardFeature = {
  guardOptions: ['count', 'body'],
  needsFresh: ({ count }: ChargingOptions<never>) => count !== undefined,
  guard({ where, engine, warnings }, options) {
    const charging = chargingFor(where, options, engine, warnings)
    if (!charging) return undefined
    return {
      first: [endIfAnswered, receiveBody(charging)],
      after: [reconsider(charging)],
      optionsFor(context) {
        const bytes = charging.bytesOf(context)
        return bytes === undefined ? undefined : { bytes }
      },
      charged: (context, verdict) => charging.applyOutcomeLater(context, verdict),
      ...(charging.maxBody !== undefined && { maxBody: charging.maxBody }),
    }
  },
}

/** Checks the announced body, before anything is charged. */
function receiveBody<Request>(charging: Charging<Request>): Step<Request> {
  return ({ context, verdict, ending }) => {
    const isDenied = verdict !== undefined && ending === undefined
    const problem = isDenied ? undefined : charging.receive(context)
    return problem && replyOutcome(problem, context)
  }
}

/** A refusal may become an admission by the outcome of other requests. */
function reconsider<Request>(charging: Charging<Request>): Step<Request> {
  return (request) => {
    const { context, verdict, isShared } = request
    if (!verdict || verdict.allowed || !request.isEnforced) return undefined
    const decideAgain = () => request.decideAgain() as Verdict | Promise<Verdict>
    return charging.reconsider(context, verdict, decideAgain, isShared)?.then((last) => {
      if (last) request.verdict = last
      else request.leave(verdict)
      return undefined
    })
  }
}
