import { SimulationError } from '../simulation-error.js'

/** The path of a log, `-` for standard input, or its lines without their breaks. */
export type LogSource = string | AsyncIterable<string>

/** A log as messages name it. */
export function nameOf(log: LogSource): string {
  if (typeof log !== 'string') return 'the given lines'
  return log === '-' ? 'standard input' : JSON.stringify(log)
}

/** The bytes of one log, decompressed. */
export interface LogBytes {
  /** As messages name it. */
  readonly name: string
  /** Size of the file when it was opened, beyond which nothing is read. Undefined for pipes. */
  readonly totalBytes: number | undefined
  /** Bytes of the file that were read so far, before they are decompressed. */
  readBytes: number
  /** May be opened again, unlike a pipe. */
  readonly isFile: boolean
  /** Ends with the log, or when the signal is aborted. Throws `DamagedLog` where the rest cannot be read. */
  chunks: AsyncGenerator<Buffer, void, void>
}

/** Characters that make a chunk. One a line would cost more than to play it. */
const CHUNK = 65_536

/** Lines as the bytes of a log. An error of theirs is the caller's, and no damage. */
export function bytesOf(lines: AsyncIterable<string>, signal: AbortSignal | undefined): LogBytes {
  const bytes = { name: nameOf(lines), totalBytes: undefined, readBytes: 0, isFile: false, chunks: chunksOf() }
  return bytes

  async function* chunksOf(): AsyncGenerator<Buffer, void, void> {
    let text = ''
    for await (const line of lines) {
      if (signal?.aborted) break
      if (typeof line !== 'string') throw new SimulationError('logs: expected lines of text, as node:readline has them')
      text += `${line}\n`
      if (text.length >= CHUNK) yield chunk()
    }
    if (text !== '') yield chunk()

    function chunk(): Buffer {
      const read = Buffer.from(text)
      bytes.readBytes += read.length
      text = ''
      return read
    }
  }
}
