import { randomUUID } from 'node:crypto'
import { events, type Store } from '@sluice/core'
import { sharedNotesOf } from '@sluice/core/internal'
import { OncePerStore } from '../once-per-store.js'
import { isTraffic, type Sink } from './decisions.js'
import { NearSink } from './near-sink.js'
import { TailSink } from './tail-sink.js'
import { TopSink } from './top-sink.js'

const EVERY_MS = 1000

interface Recorded {
  readonly stop: () => void
  /** Writes what is new, so that a reader in this process has it. */
  readonly write: () => Promise<void>
}

const recorded = new OncePerStore<Recorded>()

/**
 * Has this process record its decisions for consoles on this store: where they come from, clients near a limit, and, while a console
 * shows them, a sample of each second. Consoles with `traffic: true` call it by themselves. It ends once all who started it have called the function that this returns.
 *
 * Memory, and what it writes to the store, are bounded: see docs/console.md#traffic.
 */
export function recordTraffic(store: Store): () => void {
  return recorded.start(store, () => recordIn(store))
}

/** Writes what this process has recorded for a store, so that its own consoles show it at once. */
export async function writeTraffic(store: Store): Promise<void> {
  await recorded.of(store)?.write()
}

function recordIn(store: Store): Recorded {
  const notes = sharedNotesOf(store)
  if (!notes) return { stop() {}, async write() {} }
  const member = randomUUID()
  const sinks: Sink[] = [new TopSink(notes, member), new NearSink(notes, member), new TailSink(notes, member)]
  const write = async () => {
    for (const sink of sinks) await sink.write?.()
  }
  const off = events.on('decision', (event) => {
    if (isTraffic(event)) for (const sink of sinks) sink.note(event)
  })
  let isBusy = false
  const timer = setInterval(async () => {
    if (isBusy) return
    isBusy = true
    // The store may be away: then it is tried again.
    for (const sink of sinks) await sink.tick().catch(() => {})
    isBusy = false
  }, EVERY_MS).unref()
  return {
    stop() {
      off()
      clearInterval(timer)
      void write().catch(() => {})
    },
    write,
  }
}
