import { stat } from 'node:fs/promises'
import { START } from '../recording/form.js'
import { openBytes } from './bytes.js'
import type { LogSource } from './log-source.js'

/** Whether a file begins as recordings do. One that cannot be read does not, nor does a pipe, which can be read only once. */
export async function isRecording(log: LogSource | undefined): Promise<boolean> {
  if (typeof log !== 'string' || log === '-') return false
  try {
    if (!(await stat(log)).isFile()) return false
    const { chunks } = await openBytes(log, process.stdin, undefined)
    const { value } = await chunks.next()
    await chunks.return()
    return value?.toString('latin1', 0, START.length) === START
  } catch {
    return false
  }
}
