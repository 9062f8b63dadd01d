import type { Readable } from 'node:stream'
import { quoted } from '@sluice/core/internal'
import { proposedFields } from '../formats/field-map.js'
import { type LogFormat, WrongLog } from '../formats/format.js'
import { FORMATS } from '../formats/index.js'
import { detected } from '../formats/prefixes.js'
import { SimulationError } from '../simulation-error.js'
import { DamagedLog, followed, openBytes } from './bytes.js'
import { LineSplitter } from './lines.js'
import type { LogBytes, LogSource } from './log-source.js'
import { writtenMs } from './merge.js'

const MAX_LINES = 1000
const MAX_BYTES = 16 * 1024 * 1024

/** A log whose form is known. */
export interface KnownLog {
  /** As messages name it. */
  readonly name: string
  readonly format: LogFormat
  /** Names whose clients it knows: see `LogFormat`. */
  readonly clients: string | undefined
  /** When its first request was logged, by which several logs are merged. */
  readonly firstMs: number
  /** Size of the file. Undefined for pipes. */
  readonly totalBytes: number | undefined
  /** Opens it at its first line. Once for pipes. */
  open(): Promise<LogBytes>
}

/**
 * Recognises a log by its first lines, or tries them by a given format. Undefined for an empty log.
 *
 * @throws SimulationError where it cannot be opened, or where its first lines are of no known form
 */
export async function recognise(
  log: LogSource,
  given: LogFormat | undefined,
  stdin: Readable,
  signal: AbortSignal | undefined,
): Promise<KnownLog | undefined> {
  const open = () => openBytes(log, stdin, signal)
  const bytes = await open()
  try {
    return await recognised(bytes, given, open)
  } catch (error) {
    await bytes.chunks.return()
    throw error instanceof WrongLog ? new SimulationError(`${bytes.name} ${error.message}`) : error
  }
}

async function recognised(
  bytes: LogBytes,
  given: LogFormat | undefined,
  open: KnownLog['open'],
): Promise<KnownLog | undefined> {
  const { name, totalBytes, isFile } = bytes
  const formats = given ? [given] : FORMATS
  const { lines, format, chunks } = await firstLines(bytes, formats)
  if (isFile) await bytes.chunks.return()
  if (lines.length === 0) return undefined
  if (!format) throw new SimulationError(unknownForm(name, lines, given))
  const clients = format.clients?.(lines)
  // Pipes are read once, so their first lines are kept.
  bytes.chunks = followed(chunks, bytes.chunks)
  return {
    name,
    format,
    clients,
    firstMs: firstTime(format, lines),
    totalBytes,
    open: isFile ? open : async () => bytes,
  }
}

/** Reads until a form is sure. */
async function firstLines(bytes: LogBytes, formats: readonly LogFormat[]) {
  const lines: string[] = []
  const chunks: Buffer[] = []
  const splitter = new LineSplitter()
  const note = (text: string) => lines.push(...text.split(/\r?\n/).filter((line) => line !== ''))
  const detectedSoFar = () => (lines.length > 0 ? detected(formats, lines) : undefined)
  let format: LogFormat | undefined
  for (let read = 0; !format && lines.length < MAX_LINES && read < MAX_BYTES; ) {
    const { done, value: chunk } = await nextOf(bytes, lines)
    if (done) {
      note(splitter.end())
      return { lines, chunks, format: detectedSoFar() }
    }
    chunks.push(chunk)
    read += chunk.length
    note(splitter.push(chunk))
    format = detectedSoFar()
  }
  return { lines, chunks, format }
}

/** A damaged log is read as far as it goes, so that the lines before the damage count. */
async function nextOf({ chunks }: LogBytes, lines: readonly string[]) {
  try {
    return await chunks.next()
  } catch (error) {
    if (!(error instanceof DamagedLog)) throw error
    if (lines.length === 0) throw new SimulationError(error.message)
    return { done: true as const, value: undefined }
  }
}

function firstTime(format: LogFormat, lines: readonly string[]): number {
  const parse = format.parser()
  for (const line of lines) {
    const record = parse(line)
    if (record) return writtenMs(record)
  }
  return 0
}

function unknownForm(name: string, lines: readonly string[], given: LogFormat | undefined): string {
  const first = `its first line is ${quoted(lines[0] as string)}`
  if (given) return `${name}: expected the format ${given.name}, but most of its first lines do not parse; ${first}`
  const names = FORMATS.map((format) => format.name).join(', ')
  const isJson = lines.some((line) => line.trimStart().startsWith('{'))
  if (!isJson) {
    return `${name}: its format is none of ${names}: --format takes the text of nginx's log_format or of Apache's LogFormat; ${first}`
  }
  const proposed = proposedFields(lines)
  const remedy =
    proposed === undefined
      ? '--format takes the paths of its fields, such as {"time": ".at", "ip": ".client"}'
      : `its fields look like --format '${proposed}'`
  return `${name}: its format is none of ${names}: ${remedy}; ${first}`
}
