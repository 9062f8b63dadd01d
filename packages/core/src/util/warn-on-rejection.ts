import { isThenable } from './thenable.js'

/**
 * Heeds what a user's listener returned. Nobody waits for a promise, but one that rejects is warned of, where it
 * would have ended the process.
 */
export function heed(listener: string, returned: unknown): void {
  if (returned === undefined || !isThenable(returned)) return
  Promise.resolve(returned).catch((error) => warnOfListener(listener, error))
}

/** A user's listener failed when there was nobody left to hand its error to. */
export function warnOfListener(listener: string, error: unknown): void {
  const what = error instanceof Error ? error.message : String(error)
  process.emitWarning(`${listener}: ${what}`, { type: 'SluiceWarning', code: 'SLUICE_LISTENER_FAILED' })
}
