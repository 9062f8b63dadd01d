import { AsyncResource } from 'node:async_hooks'

/** Reported as destroyed at once: it lives as long as the process, and tools such as Jest would list it as an open handle. */
const OUTSIDE = new AsyncResource('Sluice')
// Bun returns nothing from it, where Node returns the resource.
OUTSIDE.emitDestroy()

/**
 * Starts what serves all requests of the process, such as a timer, outside of the `AsyncLocalStorage` contexts of the request that
 * happens to start it. It would keep these as long as it runs, and tracing would attribute all that it does to that request.
 */
export function outsideRequests<T>(start: () => T): T {
  return OUTSIDE.runInAsyncScope(start)
}
