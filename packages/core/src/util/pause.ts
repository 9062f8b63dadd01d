import { onAbort } from './abort-listeners.js'
import { PROCESS_TIMING } from './timing.js'

/** Longer timers overflow and fire at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * Resolves after `ms` (or some 24 days, if that is less: look again then) or when `wake` is called,
 * whichever is first; rejects with the signal's reason when aborted. Leaves neither timer nor listener behind.
 */
export function pause(
  ms: number,
  signal?: AbortSignal,
  onWaker?: (wake: () => void) => () => void,
  timing = PROCESS_TIMING,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (finish: () => void) => () => {
      timing.clearTimeout(timer)
      ignoreAbort?.()
      forget?.()
      finish()
    }
    const wake = end(resolve)
    const abort = end(() => reject(signal?.reason))
    const timer = timing.setTimeout(wake, Math.min(ms, LONGEST_TIMER_MS))
    const forget = onWaker?.(wake)
    const ignoreAbort = signal && onAbort(signal, abort)
    if (signal?.aborted) abort()
  })
}
