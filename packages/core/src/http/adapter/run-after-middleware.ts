import type { RawResponse } from '../../request/context.js'
import { listenTo } from '../response/shared-listener.js'

/** Callback middleware: calls `next()`, fails with `next(error)`, or sends the response itself. */
export type CallbackMiddleware = (next: (...failure: unknown[]) => void) => void

/**
 * Runs `handler` after callback middleware. Returns the handler's result: directly if the middleware calls `next` at
 * once, else as a promise. Throws or rejects with the error of either. Where the middleware sends the response, the
 * promise resolves to undefined once the response is sent.
 */
export function runAfterMiddleware<T>(
  middleware: CallbackMiddleware,
  handler: () => T,
  response: RawResponse,
): T | Promise<T | undefined> {
  let proceed: (() => T) | undefined
  let wake: (() => void) | undefined
  middleware((...failure) => {
    proceed = failure.length === 0 ? handler : () => fail(failure[0])
    wake?.()
  })
  // Outside of the middleware, which must not take the handler's error for its own.
  if (proceed !== undefined) return (proceed as () => T)()
  return new Promise<void>((resolve) => {
    wake = resolve
    // Not `close`: the handler runs even if its client has left, as behind any other middleware.
    const ignoreFinish = listenTo(response, 'finish', () => {
      ignoreFinish()
      resolve()
    })
  }).then(() => proceed?.())
}

function fail(error: unknown): never {
  throw error
}
