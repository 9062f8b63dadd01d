import type { HttpContext } from '../../request/context.js'
import type { Guard, Outcome } from '../guard/guard.js'
import { asFailure } from './failure.js'

/**
 * Runs a guard for frameworks whose middleware takes a callback. `write` puts an outcome on the response; then `next`
 * is called if the handler is to run. Errors go to `next`, as what `failure` makes of them; it is called once at most.
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
  if (!(outcome instanceof Promise)) {
    apply(outcome, context, write, next)
    return
  }
  outcome.then(
    (late) => apply(late, context, write, next),
    (thrown) => next(failure(thrown)),
  )
}

type Write<Context> = (outcome: Outcome, context: Context) => void
type Next = (error?: unknown) => void

function apply<Context>(outcome: Outcome, context: Context, write: Write<Context>, next: Next): void {
  try {
    write(outcome, context)
  } catch (error) {
    // Such as a response that was sent by something else meanwhile.
    next(asFailure(error))
    return
  }
  if (outcome.proceed) next()
}
