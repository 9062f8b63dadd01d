import type { ServerResponse } from 'node:http'
import { isThenable } from '../../util/thenable.js'
import { warnOfListener } from '../../util/warn-on-rejection.js'
import { asFailure } from './failure.js'

type Next = (...failure: unknown[]) => void

/**
 * Runs a handler of the application on Node's own response, for frameworks whose handlers take a callback. The response
 * begins with `status`, so that a handler that sets none does not send 200. A handler that calls `next` restores the earlier
 * status. Errors and rejections of the handler go to `next`, which is called once at most.
 */
export function runHandler(
  response: ServerResponse,
  status: number,
  handle: (next: Next) => unknown,
  next: Next,
): void {
  const before = response.statusCode
  let isCalled = false
  const goOn: Next = (...failure) => {
    if (isCalled) return
    isCalled = true
    if (!response.headersSent) response.statusCode = before
    next(...failure)
  }
  const fail = (thrown: unknown): void => {
    if (isCalled) warnOfListener('respond: handler', thrown)
    else goOn(asFailure(thrown))
  }
  response.statusCode = status
  try {
    const result = handle(goOn)
    if (isThenable(result)) Promise.resolve(result).then(undefined, fail)
  } catch (thrown) {
    fail(thrown)
  }
}
