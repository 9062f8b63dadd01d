import type { Limiter } from '../../limiter/limiter.js'
import type { PolicyChoice } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import type { IdentityByKind } from '../../store/identity.js'
import { invalidPolicy, show } from '../../util/errors.js'
import { knownOptions } from '../../util/validate.js'
import type { MaybePromise } from '../../util/when-known.js'
import type { ResponderTraits } from '../responders/responder.js'
import { finish } from './finish.js'
import type { FindInForce } from './guard-feature.js'
import { GuardedRequest } from './guarded-request.js'
import { RATE_LIMIT_OPTIONS, type RateLimitOptions } from './options.js'
import type { Outcome } from './outcome.js'
import { type GuardComposition, type GuardParts, guardParts, type SharedByGuards } from './parts.js'
import { type OwnStep, stepsFor } from './steps.js'

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
export function createGuardOf<Request>(
  options: RateLimitOptions<Request>,
  composition: GuardComposition,
): Guard<Request> {
  if (options?.policies !== undefined) return guardOfPolicies(options)
  const parts = partsAndSteps(options, composition)
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

/** The parts of a guard, and the steps that they need. */
export type PartsAndSteps<Request> = GuardParts<Request> & { readonly steps: readonly OwnStep<Request>[] }

/**
 * Checks every option, once.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function partsAndSteps<Request>(
  options: RateLimitOptions<Request>,
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
