import type { Store } from '@sluice/core'
import { startReporting } from '@sluice/core/internal'
import { History } from './history.js'
import { Live } from './live.js'
import { type StreamSource, Streams } from './streams.js'

/** The figures of a console. */
export interface ConsoleFigures {
  readonly live: Live
  readonly history: History
  readonly streams: Streams
  /** Ends streams, and the reports of this process that the console has started. */
  close(): void
}

/** @param reports whether this process reports its own counts */
export function consoleFigures(store: Store, source: Omit<StreamSource, 'read'>, reports: boolean): ConsoleFigures {
  const live = new Live(store)
  const streams = new Streams({ ...source, read: () => live.read() })
  const stop = reports ? startReporting(store) : () => {}
  return {
    live,
    history: new History(store),
    streams,
    close() {
      streams.close()
      stop()
    },
  }
}
