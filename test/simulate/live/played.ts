import { Readable } from 'node:stream'
import { policies } from '@sluice/policies'
import { Figures } from '../../../packages/simulate/src/figures/figures.js'
import { formatOf } from '../../../packages/simulate/src/formats/index.js'
import { Lane } from '../../../packages/simulate/src/lane.js'
import { openLogs } from '../../../packages/simulate/src/read/open-logs.js'
import { readingOf } from '../../../packages/simulate/src/replay/reading.js'
import { RecordContext } from '../../../packages/simulate/src/replay/record-context.js'
import { LOG_FORMAT, logOf } from './document.js'
import { type Fate, RESOLVERS, type Visit } from './live-servers.js'

/** Plays the log of visits, and returns what became of each, in the order of their starts. */
export async function playLog(document: object, visits: readonly Visit[]): Promise<Fate[]> {
  const loaded = await policies.from({ object: document, ...RESOLVERS })
  const fates: Fate[] = []
  const byContext = new Map<RecordContext, Fate>()
  class Recording extends Figures {
    override concluded(...args: Parameters<Figures['concluded']>): void {
      super.concluded(...args)
      const [context, isAdmitted] = args
      const fate = byContext.get(context) as Fate
      fate.isAdmitted = isAdmitted
      fate.decidedMs = lane.time.now() - context.arrivedAt
      if (!isAdmitted) return
      const sentFrom = lane.time.now() + context.durationMs
      if (context.hasResponse) context.response.on('close', () => (fate.sendingMs = lane.time.now() - sentFrom))
    }
  }
  const lane = new Lane(loaded, new Recording(loaded), (visits[0] as Visit).at, { maxKeys: 1e6, maxBytes: 2 ** 30 })
  const reading = readingOf({}, true)
  const logs = await openLogs(['-'], {
    format: formatOf(LOG_FORMAT),
    stdin: Readable.from([Buffer.from(logOf(visits))]),
  })
  for await (const batch of logs) {
    for (const record of batch) {
      const context = new RecordContext(record, reading, record.startMs, lane.time)
      const fate: Fate = { isAdmitted: false, decidedMs: Number.NaN, sendingMs: 0 }
      fates.push(fate)
      byContext.set(context, fate)
      await lane.play(context)
    }
  }
  await lane.end()
  await loaded.close()
  return fates
}
