import type { RequestBans } from '../../features/bans/request-bans.js'
import type { ListedSubjects } from '../../features/lists/listed-subjects.js'
import type { CostFunction } from '../../policy/request-cost.js'
import { propertyOf } from '../../util/property-of.js'
import { type MaybePromise, whenKnown } from '../../util/when-known.js'
import { marked, type Verdict } from '../../verdict/verdict.js'
import type { Charging } from '../charging/charging.js'
import { ensureCloseEvent } from '../response/close-event.js'
import { isDisabled } from '../response/disabled-response.js'
import type { GuardedRequest } from './guarded-request.js'
import type { RateLimitOptions } from './options.js'
import { end, type Outcome, replyOutcome, SKIPPED } from './outcome.js'
import type { GuardParts } from './parts.js'
import { respond } from './respond.js'

/** A step of a guard. One that returns an outcome is the last. */
export type Step<Request> = (request: GuardedRequest<Request>) => MaybePromise<Outcome | undefined>

/** The steps of a guard with these parts, in order. `finish` makes the outcome of all requests that complete them. */
export function stepsFor<Request>(parts: GuardParts<Request>): readonly Step<Request>[] {
  const { skip, listed, charging, cost, bans } = parts
  const costFunction = typeof cost === 'function' && cost
  const steps: readonly (Step<Request> | false | undefined)[] = [
    inspect,
    skip && skipBy(skip),
    listed && checkLists(listed),
    charging && endIfAnswered,
    charging && receiveBody(charging),
    costFunction && endIfAnswered,
    costFunction && resolveCost(costFunction),
    decide,
    charging && reconsider(charging),
    bans && strikeTrapped(bans),
    bans && strikeRefusal(bans),
    respond,
  ]
  return steps.filter((step) => typeof step === 'function')
}

function inspect<Request>({ guard, context }: GuardedRequest<Request>): undefined {
  guard.advice.request(context)
  ensureCloseEvent(context.response)
}

function skipBy<Request>(skip: NonNullable<RateLimitOptions<Request>['skip']>): Step<Request> {
  // Any thenable is awaited: as a boolean it would be truthy, and skip every request.
  return ({ context }) => whenKnown<unknown, Outcome | undefined>(skip(context.request, context), toSkipped)
}

function toSkipped(isSkipped: unknown): Outcome | undefined {
  return isSkipped ? SKIPPED : undefined
}

/** Runs before anything else is read from the request: a client on a list needs no key, and has no cost. */
function checkLists<Request>(listed: ListedSubjects<Request>): Step<Request> {
  const check: Step<Request> = (request) => {
    const { guard, context } = request
    const { enforcement, handleInvalid } = guard
    const { pending } = listed
    if (pending) return pending.then(() => check(request))
    let verdict: Verdict | undefined
    try {
      verdict = listed.decide(context.request, context)
    } catch (error) {
      return handleInvalid(error, request.units, context)
    }
    if (!verdict) return undefined
    request.isEnforced = enforcement.covers(verdict)
    request.verdict = request.isEnforced ? verdict : marked(verdict, { reported: true })
    if (verdict.allowed || !request.isEnforced) request.ending = 'proceed'
    return undefined
  }
  return check
}

/**
 * Ends a request whose body a limiter has rejected meanwhile. To meter the body again would end the connection before the 413 is
 * out. A cost function that reads it would fail, or wait for ever.
 */
function endIfAnswered<Request>({ context }: GuardedRequest<Request>): Outcome | undefined {
  return isDisabled(context.response) ? end(context) : undefined
}

/** Checks the announced body, before anything is charged. */
function receiveBody<Request>(charging: Charging<Request>): Step<Request> {
  return ({ context, verdict, ending }) => {
    const isDenied = verdict !== undefined && ending === undefined
    const problem = isDenied ? undefined : charging.receive(context)
    return problem && replyOutcome(problem, context)
  }
}

function resolveCost<Request>(cost: CostFunction<Request>): Step<Request> {
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
    request.isCaught = guard.bans?.catches(context) ?? false
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

/** A refusal may become an admission by the outcome of other requests. */
function reconsider<Request>(charging: Charging<Request>): Step<Request> {
  return (request) => {
    const { guard, context, verdict, units, choice, isShared } = request
    if (!verdict || verdict.allowed || !request.isEnforced) return undefined
    const decideAgain = () => guard.decider.decide(context, units, choice) as Verdict | Promise<Verdict>
    return charging.reconsider(context, verdict, decideAgain, isShared)?.then((last) => {
      if (last) request.verdict = last
      else request.leave(verdict)
      return undefined
    })
  }
}

/** A request that a trap catches is a strike. If that begins a ban, the request is refused. */
function strikeTrapped<Request>(bans: RequestBans<Request>): Step<Request> {
  return (request) => {
    const { context, verdict, isCaught, isEnforced, ending } = request
    if (!isCaught || !verdict || !isEnforced || ending) return undefined
    return replacing(request, bans.strikeTrapped(context, verdict))
  }
}

/** A final refusal is a strike, unless the store has counted it. A ban that it starts becomes its reason. */
function strikeRefusal<Request>(bans: RequestBans<Request>): Step<Request> {
  return (request) => {
    const { guard, context, verdict, isEnforced, ending } = request
    if (!verdict || verdict.allowed || !isEnforced || ending) return undefined
    // A request that waits may still be admitted.
    if (propertyOf(guard.responders.for(verdict), 'queues')) return undefined
    return replacing(request, bans.strike(context, verdict))
  }
}

/** The verdict of a strike replaces that of its request. */
function replacing<Request>(
  request: GuardedRequest<Request>,
  struck: Promise<Verdict> | undefined,
): Promise<undefined> | undefined {
  return struck?.then((last) => {
    request.verdict = last
    return undefined
  })
}
