import type { HttpContext } from './context.js'
import { asFailure } from './failure.js'
import type { Guard, Outcome } from './guard.js'

/**
 * Runs a guard for frameworks whose middleware goes on by callback. `write` puts an outcome on the
 * response; then `next` is called if the handler is to run. Whatever goes wrong goes to `next`, which
 * is called once at most.
 */
export function enforce<Request>(
  guard: Guard<Request>,
  context: HttpContext<Request>,
  write: (outcome: Outcome) => void,
  next: (error?: unknown) => void,
): void {
  const fail = (thrown: unknown): void => next(asFailure(thrown))
  const settle = (outcome: Outcome): void => {
    try {
      write(outcome)
    } catch (error) {
      // Such as a response that something else has answered meanwhile.
      fail(error)
      return
    }
    if (outcome.proceed) next()
  }

  let outcome: Outcome | Promise<Outcome>
  try {
    outcome = guard(context)
  } catch (error) {
    fail(error)
    return
  }
  if (outcome instanceof Promise) outcome.then(settle, fail)
  else settle(outcome)
}
