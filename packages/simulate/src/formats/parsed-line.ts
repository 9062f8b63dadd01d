import type { LogRecord } from '../record.js'
import { type Instant, isPlausibleDuration } from './times.js'

/** Finds in a line what few policies need. */
export interface LineReader {
  /** The name of the form of its lines. */
  readonly format: string
  /** The line before them that names their fields: empty where their form has none. */
  readonly head: string
  agent(line: string): string | undefined
  header(line: string, name: string): string | undefined
  field(line: string, path: string): string | undefined
}

/** A record that keeps its line, and reads it again for what few policies need. */
export class ParsedLine implements LogRecord {
  startMs: number
  resolutionMs: number
  durationMs: number | undefined
  ip: string | undefined = undefined
  method: string | undefined = undefined
  target: string | undefined = undefined
  status: number | undefined = undefined
  bytes: number | undefined = undefined
  user: string | undefined = undefined
  host: string | undefined = undefined
  readonly line: string
  readonly reader: LineReader

  constructor(startMs: number, resolutionMs: number, durationMs: number | undefined, line: string, reader: LineReader) {
    this.startMs = startMs
    this.resolutionMs = resolutionMs
    this.durationMs = durationMs
    this.line = line
    this.reader = reader
  }

  get agent(): string | undefined {
    return this.reader.agent(this.line)
  }

  header(name: string): string | undefined {
    return this.reader.header(this.line, name)
  }

  field(path: string): string | undefined {
    return this.reader.field(this.line, path)
  }
}

/** The record of a request that began then. Undefined if it has lasted longer than any does. */
export function begunAt(
  { ms, resolutionMs }: Instant,
  durationMs: number | undefined,
  line: string,
  reader: LineReader,
): ParsedLine | undefined {
  if (durationMs !== undefined && !isPlausibleDuration(durationMs)) return undefined
  // 1094598332.363 seconds in binary are a little less than 1094598332363 ms.
  return new ParsedLine(Math.floor(ms + 0.001), resolutionMs, durationMs, line, reader)
}

/** The record of a request that ended then, as far as its duration is known. */
export function endedAt(
  { ms, resolutionMs }: Instant,
  durationMs: number | undefined,
  line: string,
  reader: LineReader,
): ParsedLine | undefined {
  return begunAt({ ms: ms - (durationMs ?? 0), resolutionMs }, durationMs, line, reader)
}
