import { isThenable } from './thenable.js'
import { emitWarning } from './warnings.js'

/**
 * Warns if what a user's listener returned is a promise that rejects. No caller awaits it, so its rejection would end
 * the process.
 */
export function warnOnRejection(listener: string, returned: unknown): void {
  if (returned === undefined || !isThenable(returned)) return
  Promise.resolve(returned).catch((error) => warnOfListener(listener, error))
}

/** A user's listener failed where no caller is left to take its error. */
export function warnOfListener(listener: string, error: unknown): void {
  const what = error instanceof Error ? error.message : String(error)
  emitWarning('SLUICE_LISTENER_FAILED', `${listener}: ${what}`)
}
