import type { LineReader, ParsedLine } from '../../formats/parsed-line.js'
import type { LogRecord } from '../../record.js'

/** What finds in lines of one log what few policies need. */
export interface ReaderOf {
  /** The name of its form. */
  readonly format: string
  /** The line before it that names its fields. */
  readonly head: string
}

/** Records on their way between threads, outside of the heaps: objects would be copied one by one. */
export interface PackedRecords {
  /** `startMs`, `resolutionMs`, `durationMs`, `status` and `bytes` of each record in turn: NaN for undefined. */
  readonly numbers: Float64Array<ArrayBuffer>
  /** `ip`, `method`, `target`, `user`, `host` and `line` of each record in turn. */
  readonly texts: Uint8Array<ArrayBuffer>
  /** Whether characters have two bytes each. */
  readonly isWide: boolean
  /** The character at which each of these texts ends: for undefined, one less than the negative of that. */
  readonly ends: Int32Array<ArrayBuffer>
  readonly readers: readonly ReaderOf[]
  /** The place of each record's reader among them. */
  readonly readerOf: Uint16Array<ArrayBuffer>
}

const NUMBERS = 5
const TEXTS = 6

export function pack(records: readonly ParsedLine[]): PackedRecords {
  const numbers = new Float64Array(NUMBERS * records.length)
  const ends = new Int32Array(TEXTS * records.length)
  const readers = new Map<LineReader, number>()
  const readerOf = new Uint16Array(records.length)
  const texts: string[] = []
  let end = 0
  let at = 0
  const add = (text: string | undefined) => {
    if (text !== undefined) {
      texts.push(text)
      end += text.length
    }
    ends[at++] = text === undefined ? -1 - end : end
  }
  for (let i = 0; i < records.length; i++) {
    const record = records[i] as ParsedLine
    const { startMs, resolutionMs, durationMs = Number.NaN, status = Number.NaN, bytes = Number.NaN } = record
    numbers[NUMBERS * i] = startMs
    numbers[NUMBERS * i + 1] = resolutionMs
    numbers[NUMBERS * i + 2] = durationMs
    numbers[NUMBERS * i + 3] = status
    numbers[NUMBERS * i + 4] = bytes
    add(record.ip)
    add(record.method)
    add(record.target)
    add(record.user)
    add(record.host)
    add(record.line)
    const { reader } = record
    if (!readers.has(reader)) readers.set(reader, readers.size)
    readerOf[i] = readers.get(reader) as number
  }
  const text = texts.join('')
  const isWide = /[^\0-\xff]/.test(text)
  return {
    numbers,
    texts: bytesOf(text, isWide ? 'utf16le' : 'latin1'),
    isWide,
    ends,
    readers: [...readers.keys()].map(({ format, head }) => ({ format, head })),
    readerOf,
  }
}

/** In memory of their own, which can go to another thread: small buffers share theirs. */
function bytesOf(text: string, encoding: BufferEncoding): Uint8Array<ArrayBuffer> {
  const bytes = Buffer.from(text, encoding)
  return bytes.length === bytes.buffer.byteLength ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes)
}

/** @param readerBy makes what reads lines of a log */
export function unpack(packed: PackedRecords, readerBy: (of: ReaderOf) => LineReader): LogRecord[] {
  const readers = packed.readers.map(readerBy)
  const { buffer } = packed.texts
  const texts = Buffer.from(buffer)
  return Array.from(packed.readerOf, (reader, i) => new PackedRecord(packed, texts, i, readers[reader] as LineReader))
}

/** A record that is read from its batch as far as something asks for it. */
class PackedRecord implements LogRecord {
  readonly #packed: PackedRecords
  readonly #texts: Buffer
  readonly #i: number
  readonly #reader: LineReader

  constructor(packed: PackedRecords, texts: Buffer, i: number, reader: LineReader) {
    this.#packed = packed
    this.#texts = texts
    this.#i = i
    this.#reader = reader
  }

  get startMs(): number {
    return this.#packed.numbers[NUMBERS * this.#i] as number
  }

  get resolutionMs(): number {
    return this.#packed.numbers[NUMBERS * this.#i + 1] as number
  }

  get durationMs(): number | undefined {
    return this.#number(2)
  }

  get status(): number | undefined {
    return this.#number(3)
  }

  get bytes(): number | undefined {
    return this.#number(4)
  }

  get ip(): string | undefined {
    return this.#text(0)
  }

  get method(): string | undefined {
    return this.#text(1)
  }

  get target(): string | undefined {
    return this.#text(2)
  }

  get user(): string | undefined {
    return this.#text(3)
  }

  get host(): string | undefined {
    return this.#text(4)
  }

  get agent(): string | undefined {
    return this.#reader.agent(this.#text(5) as string)
  }

  header(name: string): string | undefined {
    return this.#reader.header(this.#text(5) as string, name)
  }

  field(path: string): string | undefined {
    return this.#reader.field(this.#text(5) as string, path)
  }

  #number(place: number): number | undefined {
    const number = this.#packed.numbers[NUMBERS * this.#i + place] as number
    return Number.isNaN(number) ? undefined : number
  }

  #text(place: number): string | undefined {
    const { ends, isWide } = this.#packed
    const at = TEXTS * this.#i + place
    const end = ends[at] as number
    if (end < 0) return undefined
    const before = at === 0 ? 0 : (ends[at - 1] as number)
    const start = before < 0 ? -1 - before : before
    return isWide ? this.#texts.toString('utf16le', 2 * start, 2 * end) : this.#texts.toString('latin1', start, end)
  }
}
