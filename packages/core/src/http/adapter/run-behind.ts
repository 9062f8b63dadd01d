import type { RawResponse } from '../../request/context.js'

/** Callback middleware: goes on with `next()`, fails with `next(error)`, or answers the request itself. */
export type Passage = (next: (...failure: unknown[]) => void) => void

/**
 * Runs `handler` behind callback middleware and returns what it returns: at once if the middleware
 * goes on at once, else as a promise. Throws or rejects with what either does. Where the middleware
 * answers the request, the promise resolves to undefined once that is sent.
 */
export function runBehind<T>(passage: Passage, handler: () => T, response: RawResponse): T | Promise<T | undefined> {
  let goOn: (() => T) | undefined
  let wake: (() => void) | undefined
  passage((...failure) => {
    goOn = failure.length === 0 ? handler : () => fail(failure[0])
    wake?.()
  })
  // Not from inside the middleware, which must not take the handler's error for its own.
  if (goOn !== undefined) return (goOn as () => T)()
  return new Promise<void>((resolve) => {
    wake = resolve
    // Not `close`: the handler of a client that has left meanwhile runs, as it does behind any other middleware.
    response.on('finish', resolve)
  }).then(() => goOn?.())
}

function fail(error: unknown): never {
  throw error
}
