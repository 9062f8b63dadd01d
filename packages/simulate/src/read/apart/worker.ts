// Runs in a thread of its own, as the text in worker.generated.ts: `npm run generate` after a change of this file or of what
// it imports.
import { createReadStream, fstatSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { formatOf } from '../../formats/index.js'
import { SimulationError } from '../../simulation-error.js'
import { openLogs } from '../open-logs.js'
import type { FromThread, LogsToRead, ToThread } from './open-apart.js'
import { pack } from './packed.js'

/** Batches that are on their way: the next ones are read while these are played. */
const MAX_AHEAD = 3

const port = parentPort as MessagePort
const stop = new AbortController()
let ahead = 0
let taken: (() => void) | undefined

port.on('message', (message: ToThread) => {
  if (message === 'stop') stop.abort()
  else ahead--
  taken?.()
})

async function read({ files, format, isLenient }: LogsToRead): Promise<void> {
  const logs = await openLogs(files, {
    ...(format !== undefined && { format: formatOf(format) }),
    isLenient,
    signal: stop.signal,
    ...(files.includes('-') && { stdin: standardInput() }),
  })
  send({ kind: 'opened', formats: logs.formats, bytesTotal: logs.bytesTotal })
  for await (const batch of logs) {
    while (ahead >= MAX_AHEAD && !stop.signal.aborted) await new Promise<void>((resolve) => (taken = resolve))
    ahead++
    const records = pack(batch)
    const { numbers, texts, ends, readerOf } = records
    send({ kind: 'batch', records, counts: logs.counts }, [numbers.buffer, texts.buffer, ends.buffer, readerOf.buffer])
  }
  send({ kind: 'end', counts: logs.counts })
}

/** That of `process` would pass through the thread that plays. */
function standardInput(): Readable {
  return fstatSync(0).isFile() ? createReadStream('', { fd: 0 }) : new Socket({ fd: 0, writable: false })
}

function send(message: FromThread, transfer: ArrayBuffer[] = []): void {
  port.postMessage(message, transfer)
}

read(workerData as LogsToRead)
  .catch((error: Error) => send({ kind: 'failed', message: error.message, isOfUser: error instanceof SimulationError }))
  .finally(() => port.close())
