import { randomUUID } from 'node:crypto'
import { startCounting } from '../../metrics/counting.js'
import type { Snapshot } from '../../metrics/snapshot.js'
import { countsOf } from './counts.js'
import { liveText } from './live.js'
import type { CountSource, Run } from './reporter.js'

/** The run of this process. A new one begins once nothing has reported: decisions in between are in no figures. */
let run: Run = { id: '', reports: 0 }
let reporters = 0
const away = { ms: 0, until: 0 }

let recorders = 0

/** Has the figures of this process say that it records its refusals, until the function that this returns is called. */
export function sayRecording(): () => void {
  recorders++
  return () => {
    recorders--
  }
}

/** The counts of this process, and its run. */
export function processCounts(): { readonly source: CountSource; readonly run: Run } {
  const counting = startCounting()
  const startedAt = Date.now()
  if (reporters++ === 0) run = { id: randomUUID(), reports: 0 }
  const source: CountSource = {
    read() {
      const snapshot = counting.read()
      noteAway(snapshot, performance.now())
      const counts = countsOf(snapshot, away.ms)
      return {
        counts,
        live: (before, overMs) =>
          liveText(snapshot, {
            startedAt,
            overMs,
            records: recorders > 0 ? 1 : 0,
            counts: [...counts].map(([name, count]) => [name, count, Math.max(0, count - (before.get(name) ?? 0))]),
          }),
      }
    },
    stop() {
      reporters--
      counting.stop()
    },
  }
  return { source, run }
}

/** Adds up the time in which a store was unavailable, once for all reporters. */
function noteAway({ stores }: Snapshot, atMs: number): void {
  const isAway = stores.some(({ state }) => state === 'unavailable')
  if (isAway && away.until > 0) away.ms += Math.round(atMs - away.until)
  away.until = isAway ? atMs : 0
}
