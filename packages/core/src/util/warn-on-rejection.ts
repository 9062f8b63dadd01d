import { isThenable } from './thenable.js'
import { emitWarning } from './warnings.js'

/**
 * Warns if a user's listener returned a promise that rejects. No caller awaits it, so its rejection would end the process.
 */
export function warnOnRejection(listener: string, returned: unknown, emit: Emit): void {
  if (returned === undefined || !isThenable(returned)) return
  Promise.resolve(returned).catch((error) => warnOfListener(listener, error, emit))
}

/** The receiver of the warning: the process, or warnings that an option may silence. */
type Emit = (code: 'SLUICE_LISTENER_FAILED', message: string) => void

/** A user's listener failed where no caller is left to take its error. */
export function warnOfListener(listener: string, error: unknown, emit: Emit = emitWarning): void {
  const what = error instanceof Error ? error.message : String(error)
  emit('SLUICE_LISTENER_FAILED', `${listener}: ${what}`)
}
