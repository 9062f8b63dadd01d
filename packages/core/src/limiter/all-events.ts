import { noteObserver } from '../util/copies.js'
import { everywhere } from '../util/listeners.js'
import type { ListenOptions, SluiceEvents } from './events.js'
import { listen } from './near-limit.js'

/** The events of every limiter, store and policies of this process. */
export interface ProcessEvents {
  /**
   * Calls back with each event, synchronously. A listener that throws or rejects causes a warning of the process
   * (`SLUICE_LISTENER_FAILED`). Returns a function that stops listening.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  on<Name extends keyof SluiceEvents>(
    event: Name,
    listener: (event: SluiceEvents[Name]) => unknown,
    options?: ListenOptions,
  ): () => void
}

/**
 * The events of every limiter, store and policies of this process: see docs/events.md.
 *
 * @example events.on('store', ({ state, cause }) => pager.notify(state, cause))
 */
export const events: ProcessEvents = {
  on(event, listener, options) {
    noteObserver('events: on')
    return listen(everywhere, 'events', event, listener, options)
  },
}
