import { show } from './errors.js'
import { isThenable } from './thenable.js'
import { optionalFunction } from './validate.js'
import { emitWarning } from './warnings.js'

/**
 * An option that is a listener. Warns if it returns a promise that rejects: no caller awaits it, so its rejection would end the
 * process.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function optionalListener<Args extends unknown[]>(
  where: string,
  field: string,
  listener: ((...args: Args) => unknown) | undefined,
  emit: Emit,
): ((...args: Args) => void) | undefined {
  optionalFunction(where, field, listener)
  if (!listener) return undefined
  return (...args) => {
    const returned = listener(...args)
    if (returned === undefined || !isThenable(returned)) return
    Promise.resolve(returned).catch((error) => warnOfListener(`${where}: ${field}`, error, emit))
  }
}

/** The receiver of the warning: the process, or warnings that an option may silence. */
type Emit = (code: 'SLUICE_LISTENER_FAILED', message: string) => void

/** A user's listener failed where no caller is left to take its error. */
export function warnOfListener(listener: string, error: unknown, emit: Emit = emitWarning): void {
  const what = error instanceof Error ? error.message : typeof error === 'string' ? error : show(error)
  emit('SLUICE_LISTENER_FAILED', `${listener}: ${what}`)
}
