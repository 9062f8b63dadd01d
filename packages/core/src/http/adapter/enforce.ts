import type { HttpContext } from '../../request/context.js'
import type { Guard, Outcome } from '../guard/guard.js'
import { asFailure } from './failure.js'

/**
 * Runs a guard for frameworks whose middleware goes on by callback. `write` puts an outcome on the
 * response; then `next` is called if the handler is to run. Whatever goes wrong goes to `next`, which
 * is called once at most, as what `failure` makes of it.
 */
export function enforce<Request, Context extends HttpContext<Request>>(
  guard: Guard<Request>,
  context: Context,
  write: Write<Context>,
  next: Next,
  failure: (thrown: unknown) => object = asFailure,
): void {
  let outcome: Outcome | Promise<Outcome>
  try {
    outcome = guard(context)
  } catch (thrown) {
    next(failure(thrown))
    return
  }
  if (outcome instanceof Promise) settleLater(outcome, context, write, next, failure)
  else settle(outcome, context, write, next)
}

type Write<Context> = (outcome: Outcome, context: Context) => void
type Next = (error?: unknown) => void

// Apart, so that what is decided at once makes no closures.
function settleLater<Context>(
  outcome: Promise<Outcome>,
  context: Context,
  write: Write<Context>,
  next: Next,
  failure: (thrown: unknown) => object,
): void {
  outcome.then(
    (late) => settle(late, context, write, next),
    (thrown) => next(failure(thrown)),
  )
}

function settle<Context>(outcome: Outcome, context: Context, write: Write<Context>, next: Next): void {
  try {
    write(outcome, context)
  } catch (error) {
    // Such as a response that something else has answered meanwhile.
    next(asFailure(error))
    return
  }
  if (outcome.proceed) next()
}
