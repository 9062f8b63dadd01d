import type { HttpContext } from '../../request/context.js'
import { SluiceError } from '../../util/errors.js'
import { propertyOf } from '../../util/property-of.js'
import type { BasicGuard } from '../guard/guard.js'
import type { HandlerCall, Outcome } from '../guard/outcome.js'
import { asFailure } from './failure.js'

/** The functions of an adapter that `enforce` calls. */
export interface Enforcing<Context> {
  /** Writes an outcome to the response: its headers, and its reply if there is one. */
  readonly write: (outcome: Outcome, context: Context) => void
  /** Runs a handler of the application in place of the route's. @default options that need it are an error */
  readonly handle?: (call: HandlerCall, context: Context, next: Next, outcome: Outcome) => void
  /** Returns the value for `next` after a function of the application threw. @default the thrown object, or an error about it */
  readonly failure?: (thrown: unknown) => object
}

/**
 * Runs a guard for frameworks whose middleware takes a callback. Writes the outcome to the response, then calls `next` if the
 * handler is to run. Errors go to `next`, which is called once at most.
 */
export function enforce<Request, Context extends HttpContext<Request>>(
  guard: BasicGuard<Request>,
  context: Context,
  by: Enforcing<Context>,
  next: Next,
): void {
  let outcome: Outcome | Promise<Outcome>
  try {
    outcome = guard(context)
  } catch (thrown) {
    next(failureOf(thrown, by))
    return
  }
  if (!(outcome instanceof Promise)) {
    apply(outcome, context, by, next)
    return
  }
  outcome.then(
    (late) => apply(late, context, by, next),
    (thrown) => next(failureOf(thrown, by)),
  )
}

function failureOf<Context>(thrown: unknown, by: Enforcing<Context>): object {
  return (propertyOf(by, 'failure') ?? asFailure)(thrown)
}

type Next = (...failure: unknown[]) => void

function apply<Context>(outcome: Outcome, context: Context, by: Enforcing<Context>, next: Next): void {
  try {
    by.write(outcome, context)
  } catch (error) {
    // Such as a response that other code has sent meanwhile.
    next(asFailure(error))
    return
  }
  if (outcome.proceed) next()
  else if (outcome.error) next(outcome.error)
  else if (outcome.handler) {
    if (by.handle) by.handle(outcome.handler, context, next, outcome)
    else next(new SluiceError('INVALID_POLICY', 'rateLimit: respond: this adapter runs no handlers of the application'))
  }
}
