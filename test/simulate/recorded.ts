import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { loadDocument } from '../../packages/simulate/src/documents.js'
import { Figures } from '../../packages/simulate/src/figures/figures.js'
import { Lane } from '../../packages/simulate/src/lane.js'
import { openLogs } from '../../packages/simulate/src/read/open-logs.js'
import { matcherOf } from '../../packages/simulate/src/replay/match-by-path.js'
import { readingOf, resolversOf } from '../../packages/simulate/src/replay/reading.js'
import { RecordContext } from '../../packages/simulate/src/replay/record-context.js'

/** A recorded request, and whether the replay admits it. */
export interface ReplayedRequest {
  readonly recorded: string
  readonly isAdmitted: boolean
  readonly line: Readonly<Record<string, unknown>>
}

/** Replays recordings by a document, request by request. */
export async function replayed(files: readonly string[], document: object): Promise<ReplayedRequest[]> {
  const reading = readingOf({}, false, true)
  const played = await loadDocument(document, resolversOf({}, reading), true)
  const requests: ReplayedRequest[] = []
  class Noting extends Figures {
    override concluded(...args: Parameters<Figures['concluded']>): void {
      super.concluded(...args)
      const [{ request }, isAdmitted] = args
      const line = JSON.parse((request as unknown as { line: string }).line)
      requests.push({ recorded: line.outcome, isAdmitted, line })
    }
  }
  const logs = await openLogs(files)
  let lane: Lane | undefined
  for await (const batch of logs) {
    for (const record of batch) {
      lane ??= new Lane(matcherOf(played), new Noting(played.policies), record.startMs, {
        maxKeys: 1e6,
        maxBytes: 2 ** 30,
      })
      await lane.play(new RecordContext(record, reading, record.startMs, lane.time))
    }
  }
  await lane?.end()
  await played.policies.close()
  return requests
}

/** Those whose decision differs. */
export function differing(requests: readonly ReplayedRequest[]): ReplayedRequest[] {
  return requests.filter(({ recorded, isAdmitted }) => (recorded === 'admitted') !== isAdmitted)
}

/** All files of a recording, the newest first, and what is in them. */
export function filesOfRecording(file: string): string[] {
  return readdirSync(dirname(file))
    .filter((name) => name.startsWith(basename(file)))
    .sort()
    .map((name) => join(dirname(file), name))
}
