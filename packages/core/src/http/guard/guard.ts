import type { Limiter } from '../../limiter/limiter.js'
import type { PolicyChoice } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import type { IdentityByKind } from '../../store/identity.js'
import { invalidPolicy, show } from '../../util/errors.js'
import { knownOptions } from '../../util/validate.js'
import { type MaybePromise, whenKnown } from '../../util/when-known.js'
import { marked, type Verdict } from '../../verdict/verdict.js'
import type { ResponderTraits } from '../responders/responder.js'
import { ensureCloseEvent } from '../response/close-event.js'
import { isDisabled } from '../response/disabled-response.js'
import type { FindInForce } from './decider.js'
import { end, finish } from './finish.js'
import { GuardedRequest } from './guarded-request.js'
import { RATE_LIMIT_OPTIONS, type RateLimitOptions } from './options.js'
import { type Outcome, replyOutcome, SKIPPED } from './outcome.js'
import { type GuardParts, guardParts } from './parts.js'
import { respond } from './respond.js'

/**
 * Decides on requests of any framework. Returns a promise only where it has to wait. Throws or rejects with the error of a user
 * function or the store; nothing is charged then.
 */
export interface Guard<Request> {
  (context: HttpContext<Request>): Outcome | Promise<Outcome>
  /** The guard's limiter: to peek, reset, block and unblock. */
  readonly limiter: Limiter<Request | string | IdentityByKind>
  /** The property that holds verdicts: the option `requestProperty`. */
  readonly requestProperty: string
  /** Whether its verdicts take permits of `concurrency` limits, which are held until the handler is done. */
  readonly holdsPermits: boolean
  /** Traits of any of its responders. Undefined where policies choose these at each request. */
  readonly responders?: Pick<ResponderTraits, 'deceives' | 'degrades'>
}

/**
 * Makes the guard behind a framework's `rateLimit`.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function createGuard<Request>(options: RateLimitOptions<Request>): Guard<Request> {
  if (options?.policies !== undefined) return guardOfPolicies(options)
  const parts = guardParts(options)
  return Object.assign((context: HttpContext<Request>) => passThroughGuard(parts, context), {
    limiter: parts.limiter as Limiter<Request | string | IdentityByKind>,
    requestProperty: parts.requestProperty,
    holdsPermits: parts.permits !== undefined,
    responders: parts.responders,
  })
}

/** Policies bring their guard: most limiters have none, and bundles of these do without it. */
function guardOfPolicies<Request>(options: RateLimitOptions<Request>): Guard<Request> {
  knownOptions('rateLimit', options, RATE_LIMIT_OPTIONS)
  const { policies, name = 'default' } = options
  if (typeof policies?.makeGuard !== 'function') {
    invalidPolicy(
      `policies ${show(name)}`,
      'policies',
      'what `await policies.from(…)` of @sluice/policies returns',
      policies,
    )
  }
  return policies.makeGuard(options as never) as Guard<Request>
}

/** A step of the guard. One that returns an outcome is the last. */
type Step = <Request>(request: GuardedRequest<Request>) => MaybePromise<Outcome | undefined>

/** The steps of the guard, in order. `finish` makes the outcome of all requests that complete them. */
const STEPS: readonly Step[] = [
  skip,
  checkLists,
  receiveBody,
  resolveCost,
  decide,
  reconsider,
  strikeTrapped,
  strikeRefusal,
  respond,
]

/**
 * Passes a request through a guard. `choice`: the limits of this request, where their numbers differ from those of the guard.
 * `inForce`: called when the request waits, where its policies may change.
 */
export function passThroughGuard<Request>(
  guard: GuardParts<Request>,
  context: HttpContext<Request>,
  choice?: PolicyChoice<Request>,
  inForce?: FindInForce<Request>,
): MaybePromise<Outcome> {
  return runSteps(new GuardedRequest(guard, context, choice, inForce), 0)
}

/** Returns a promise only where a step does. */
function runSteps<Request>(request: GuardedRequest<Request>, from: number): MaybePromise<Outcome> {
  for (let i = from; i < STEPS.length; i++) {
    const outcome = (STEPS[i] as Step)(request)
    if (outcome instanceof Promise) return outcome.then((known) => known ?? runSteps(request, i + 1))
    if (outcome) return outcome
  }
  return finish(request)
}

function skip<Request>({ guard, context }: GuardedRequest<Request>): MaybePromise<Outcome | undefined> {
  const { skip, advice } = guard
  advice.request(context)
  ensureCloseEvent(context.response)
  // Any thenable is awaited: as a boolean it would be truthy, and skip every request.
  return skip && whenKnown<unknown, Outcome | undefined>(skip(context.request, context), toSkipped)
}

function toSkipped(isSkipped: unknown): Outcome | undefined {
  return isSkipped ? SKIPPED : undefined
}

/** Runs before anything else is read from the request: a client on a list needs no key, and has no cost. */
function checkLists<Request>(request: GuardedRequest<Request>): MaybePromise<Outcome | undefined> {
  const { guard, context } = request
  const { listed, enforcement, handleInvalid } = guard
  if (!listed) return undefined
  const { pending } = listed
  if (pending) return pending.then(() => checkLists(request))
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

/** Checks the announced body, before anything is charged. */
function receiveBody<Request>({ guard, context, verdict, ending }: GuardedRequest<Request>): Outcome | undefined {
  const isDenied = verdict !== undefined && ending === undefined
  const problem = isDenied ? undefined : guard.charging?.receive(context)
  if (problem) return replyOutcome(problem)
  return isDisabled(context.response) ? end(context) : undefined
}

function resolveCost<Request>(request: GuardedRequest<Request>): MaybePromise<undefined> {
  if (request.verdict) return undefined
  const { cost } = request.guard
  if (typeof cost === 'number') {
    request.units = cost
    return undefined
  }
  return whenKnown(cost(request.context.request, request.context), (units) => {
    request.units = units
    return undefined
  })
}

function decide<Request>(request: GuardedRequest<Request>): MaybePromise<Outcome | undefined> {
  if (request.verdict) return undefined
  const { guard, context, units, choice } = request
  let verdict: MaybePromise<Verdict | undefined>
  try {
    request.isCaught = guard.bans?.catches(context) ?? false
    verdict = guard.decider.decide(context, units, choice)
  } catch (error) {
    // The request cannot be counted, because of a missing or invalid key or cost: there is no verdict.
    return guard.handleInvalid(error, units, context)
  }
  if (!(verdict instanceof Promise)) return noteVerdict(request, verdict)
  return verdict.then(
    (late) => {
      // The promise may be that of a function of the application.
      request.isShared = late?.kind === 'decided' && guard.engine.isStoreAsync
      return noteVerdict(request, late)
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
function reconsider<Request>(request: GuardedRequest<Request>): MaybePromise<undefined> {
  const { guard, context, verdict, units, choice, isShared } = request
  const { charging, decider } = guard
  if (!charging || !verdict || verdict.allowed || !request.isEnforced) return undefined
  const decideAgain = () => decider.decide(context, units, choice) as Verdict | Promise<Verdict>
  return charging.reconsider(context, verdict, decideAgain, isShared)?.then((last) => {
    if (last) request.verdict = last
    else request.leave(verdict)
    return undefined
  })
}

/** A request that a trap catches is a strike. If that begins a ban, the request is refused. */
function strikeTrapped<Request>(request: GuardedRequest<Request>): MaybePromise<undefined> {
  const { guard, context, verdict, isCaught, isEnforced, ending } = request
  if (!isCaught || !verdict || !isEnforced || ending) return undefined
  return guard.bans?.strikeTrapped(context, verdict)?.then((last) => {
    request.verdict = last
    return undefined
  })
}

/** A final refusal is a strike, unless the store has counted it. A ban that it starts becomes its reason. */
function strikeRefusal<Request>(request: GuardedRequest<Request>): MaybePromise<undefined> {
  const { guard, context, verdict, isEnforced, ending } = request
  if (!guard.bans || !verdict || verdict.allowed || !isEnforced || ending) return undefined
  // A request that waits may still be admitted.
  if (guard.responders.for(verdict).queues) return undefined
  return guard.bans.strike(context, verdict)?.then((last) => {
    request.verdict = last
    return undefined
  })
}
