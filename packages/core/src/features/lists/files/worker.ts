// Runs in a thread of its own, as the text in worker.generated.ts: `npm run generate` after a change of this file or of
// what it imports.
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { buffersIn, ListBuilder } from '../list-data.js'
import { FORMATS } from './formats.js'
import { FileFault } from './lines.js'
import type { LoadRequest, LoadResult } from './load.js'
import { stampOf } from './stamp.js'

function load({ path, format }: LoadRequest): LoadResult {
  const file = openSync(path, 'r')
  try {
    const before = fstatSync(file, { bigint: true })
    const text = readFileSync(file, 'utf8')
    const stamp = stampOf(before)
    // It is still being written: what was read may be half of it.
    if (stampOf(fstatSync(file, { bigint: true })) !== stamp) return { kind: 'changing' }
    try {
      const builder = new ListBuilder()
      FORMATS[format](text.startsWith('\ufeff') ? text.slice(1) : text, builder, Number(before.mtimeMs))
      return { kind: 'loaded', stamp, data: builder.build() }
    } catch (error) {
      if (error instanceof FileFault) return { kind: 'faulty', stamp, line: error.line, message: error.message }
      throw error
    }
  } finally {
    closeSync(file)
  }
}

const result = load(workerData as LoadRequest)
parentPort?.postMessage(result, result.kind === 'loaded' ? buffersIn(result.data) : [])
