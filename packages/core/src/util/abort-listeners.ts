import { SharedListeners } from './shared-listeners.js'

const aborts = new SharedListeners<AbortSignal>(
  (signal, dispatch) => signal.addEventListener('abort', dispatch),
  (signal, dispatch) => signal.removeEventListener('abort', dispatch),
)

/** Listens for the abort of a signal until the returned function is called. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  return aborts.listen(signal, listener)
}
