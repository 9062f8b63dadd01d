import type { BasicLimiter } from '../../limiter/limiter.js'
import type { PolicyChoice } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import type { IdentityByKind } from '../../store/identity.js'
import type { MaybePromise } from '../../util/when-known.js'
import type { ResponderTraits } from '../responders/responder.js'
import { finish } from './finish.js'
import type { FindInForce } from './guard-feature.js'
import { GuardedRequest } from './guarded-request.js'
import type { BasicRateLimitOptions } from './options.js'
import type { Outcome } from './outcome.js'
import { type GuardComposition, type GuardParts, guardParts, type SharedByGuards } from './parts.js'
import { notePartsOf } from './parts-of-limiters.js'
import { type OwnStep, stepsFor } from './steps.js'

/**
 * Decides on requests of any framework. Returns a promise only where it has to wait. Throws or rejects with the error of a user
 * function or the store; nothing is charged then.
 */
export interface BasicGuard<Request> {
  (context: HttpContext<Request>): Outcome | Promise<Outcome>
  /** The guard's limiter: to peek, reset, block and unblock. */
  readonly limiter: BasicLimiter<Request | string | IdentityByKind>
  /** The property that holds verdicts: the option `requestProperty`. */
  readonly requestProperty: string
  /** Whether its verdicts take permits of `concurrency` limits, which are held until the handler is done. */
  readonly holdsPermits: boolean
  /** Traits of any of its responders. Undefined if policies choose these at each request. */
  readonly responders?: Pick<ResponderTraits, 'deceives' | 'degrades'>
}

/**
 * Makes the guard behind a framework's `rateLimit`.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function createGuardOf<Request>(
  options: BasicRateLimitOptions<Request>,
  composition: GuardComposition,
): BasicGuard<Request> {
  const parts = partsAndSteps(options, composition)
  notePartsOf(parts.limiter, parts as never)
  return Object.assign((context: HttpContext<Request>) => passThroughGuard(parts, context), {
    limiter: parts.limiter as BasicLimiter<Request | string | IdentityByKind>,
    requestProperty: parts.requestProperty,
    holdsPermits: parts.permits !== undefined,
    responders: parts.responders,
  })
}

/** The parts of a guard, and the steps that they need. */
export type PartsAndSteps<Request> = GuardParts<Request> & { readonly steps: readonly OwnStep<Request>[] }

/**
 * Checks every option, once.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function partsAndSteps<Request>(
  options: BasicRateLimitOptions<Request>,
  composition: GuardComposition,
  shared?: SharedByGuards,
): PartsAndSteps<Request> {
  const parts = guardParts(options, composition, shared)
  return { ...parts, steps: stepsFor(parts) }
}

/**
 * Passes a request through a guard. `choice`: the limits of this request, where their numbers differ from those of the guard.
 * `inForce`: called when the request waits, where its policies may change.
 */
export function passThroughGuard<Request>(
  guard: PartsAndSteps<Request>,
  context: HttpContext<Request>,
  choice?: PolicyChoice<Request>,
  inForce?: FindInForce<Request>,
): MaybePromise<Outcome> {
  return runSteps(new GuardedRequest(guard, context, choice, inForce), guard.steps, 0)
}

/** Returns a promise only where a step does. Makes no closure: V8 would allocate for that in every request, and for every step. */
function runSteps<Request>(
  request: GuardedRequest<Request>,
  steps: readonly OwnStep<Request>[],
  from: number,
): MaybePromise<Outcome> {
  for (let i = from; i < steps.length; i++) {
    const outcome = (steps[i] as OwnStep<Request>)(request)
    if (outcome) return outcome instanceof Promise ? runLater(outcome, request, steps, i + 1) : outcome
  }
  return finish(request)
}

function runLater<Request>(
  pending: Promise<Outcome | undefined>,
  request: GuardedRequest<Request>,
  steps: readonly OwnStep<Request>[],
  from: number,
): Promise<Outcome> {
  return pending.then((outcome) => outcome ?? runSteps(request, steps, from))
}
