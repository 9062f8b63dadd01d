import type { CostFunction } from '../../policy/request-cost.js'
import { propertiesOf } from '../../util/property-of.js'
import { type MaybePromise, whenKnown } from '../../util/when-known.js'
import type { Verdict } from '../../verdict/verdict.js'
import { ensureCloseEvent } from '../response/close-event.js'
import { isDisabled } from '../response/disabled-response.js'
import type { GuardedRequest } from './guarded-request.js'
import type { BasicRateLimitOptions } from './options.js'
import { end, endIfAnswered, type Outcome, SKIPPED } from './outcome.js'
import type { GuardParts } from './parts.js'
import { respond } from './respond.js'

/** A step of the guard itself, which knows more of a request. */
export type OwnStep<Request> = (request: GuardedRequest<Request>) => MaybePromise<Outcome | undefined>

/** The steps of a guard with these parts, in order. `finish` makes the outcome of all requests that complete them. */
export function stepsFor<Request>(parts: GuardParts<Request>): readonly OwnStep<Request>[] {
  const { skip, cost, features } = parts
  const stepsAt = (place: 'first' | 'before' | 'after') => propertiesOf(features, place).flat()
  return [
    inspect,
    ...(skip ? [skipBy(skip)] : []),
    ...stepsAt('first'),
    ...(typeof cost === 'function' ? [endIfAnswered, resolveCost(cost)] : []),
    ...stepsAt('before'),
    decide,
    ...stepsAt('after'),
    respond,
  ]
}

function inspect<Request>({ guard, context }: GuardedRequest<Request>): undefined {
  guard.advice.request(context)
  ensureCloseEvent(context.response)
}

function skipBy<Request>(skip: NonNullable<BasicRateLimitOptions<Request>['skip']>): OwnStep<Request> {
  // Any thenable is awaited: as a boolean it would be truthy, and skip every request.
  return ({ context }) => whenKnown<unknown, Outcome | undefined>(skip(context.request, context), toSkipped)
}

function toSkipped(isSkipped: unknown): Outcome | undefined {
  return isSkipped ? SKIPPED : undefined
}

function resolveCost<Request>(cost: CostFunction<Request>): OwnStep<Request> {
  return (request) => {
    const { context, verdict } = request
    if (verdict) return undefined
    return whenKnown(cost(context.request, context), (units) => {
      request.units = units
      return undefined
    })
  }
}

function decide<Request>(request: GuardedRequest<Request>): MaybePromise<Outcome | undefined> {
  const { guard, context, units, choice } = request
  if (isDisabled(context.response)) return end(context)
  if (request.verdict) return undefined
  let verdict: MaybePromise<Verdict | undefined>
  try {
    verdict = guard.decider.decide(context, units, choice)
  } catch (error) {
    // The request cannot be counted, because of a missing or invalid key or cost: there is no verdict.
    return guard.handleInvalid(error, units, context)
  }
  return verdict instanceof Promise ? noteLater(request, verdict) : noteVerdict(request, verdict)
}

/** A separate function, as it makes closures: V8 would allocate for them in each call of `decide`. */
function noteLater<Request>(
  request: GuardedRequest<Request>,
  pending: Promise<Verdict | undefined>,
): Promise<Outcome | undefined> {
  const { guard, context, units } = request
  return pending.then(
    (verdict) => {
      // The promise may be that of a function of the application.
      request.isShared = verdict?.kind === 'decided' && guard.engine.isStoreAsync
      return noteVerdict(request, verdict)
    },
    (error) => guard.handleInvalid(error, units, context),
  )
}

function noteVerdict<Request>(request: GuardedRequest<Request>, verdict: Verdict | undefined): Outcome | undefined {
  if (!verdict) return SKIPPED
  const { advice, enforcement } = request.guard
  advice.verdict(verdict)
  request.verdict = verdict
  request.isEnforced = enforcement.covers(verdict)
  return undefined
}
