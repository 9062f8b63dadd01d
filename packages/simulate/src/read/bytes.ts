import { isAscii } from 'node:buffer'
import { constants, open as openDescriptor } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { Socket } from 'node:net'
import { pipeline, Readable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createGunzip, inflateRawSync, constants as zlib } from 'node:zlib'
import { SimulationError } from '../simulation-error.js'
import { bytesOf, type LogBytes, type LogSource, nameOf } from './log-source.js'

const CHUNK_BYTES = 256 * 1024

/** The rest of a log cannot be read. */
export class DamagedLog extends Error {}

/**
 * Opens a log.
 *
 * @throws SimulationError where it cannot be opened, or is no text
 */
export async function openBytes(log: LogSource, stdin: Readable, signal: AbortSignal | undefined): Promise<LogBytes> {
  if (typeof log !== 'string') return bytesOf(log, signal)
  const bytes = log === '-' ? new Bytes(nameOf(log), stdin, undefined) : await opened(log, signal)
  const raw = bytes.raw(signal)
  const first = await firstOf(raw)
  const chunks = first.done ? raw : followed([first.value], raw)
  const form = first.done ? undefined : formOf(first.value)
  if (form !== undefined && form !== 'gzip') {
    await raw.return()
    throw new SimulationError(`${bytes.name}: expected text or gzip, got ${form}`)
  }
  const again = bytes.isFile ? async () => (await opened(log as string, signal)).raw(signal) : undefined
  bytes.chunks = form === 'gzip' ? gunzipped(bytes.name, chunks, again) : chunks
  return bytes
}

/** The first chunk with more than zeros, which `copytruncate` of logrotate leaves at the start of a log. */
async function firstOf(chunks: AsyncGenerator<Buffer, void, void>): Promise<IteratorResult<Buffer, void>> {
  for (;;) {
    const first = await chunks.next()
    if (first.done) return first
    const start = first.value.findIndex((byte) => byte !== 0)
    if (start >= 0) return { done: false, value: first.value.subarray(start) }
  }
}

async function opened(file: string, signal: AbortSignal | undefined): Promise<Bytes> {
  const name = nameOf(file)
  try {
    if ((await stat(file)).isFIFO()) return new Bytes(name, await openPipe(file, signal), undefined)
    const handle = await open(file, 'r')
    const stats = await handle.stat()
    if (stats.isFile()) return new Bytes(name, handle, stats.size)
    if (!stats.isDirectory()) return new Bytes(name, handle.createReadStream({ highWaterMark: CHUNK_BYTES }), undefined)
    await handle.close()
  } catch (error) {
    throw new SimulationError(`cannot read ${name} (${(error as NodeJS.ErrnoException).code})`)
  }
  throw new SimulationError(`${name}: expected a file, got a directory`)
}

/** Opens a pipe once another process writes to it, or the signal is aborted. A stream of files would wait whatever signals come. */
async function openPipe(file: string, signal: AbortSignal | undefined): Promise<Readable> {
  const opening = promisify(openDescriptor)(file, 'r')
  const isOpen = new AbortController()
  const stop = () => void endWait(file, isOpen.signal)
  if (signal?.aborted) stop()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    return new Socket({ fd: await opening, writable: false })
  } finally {
    isOpen.abort()
    signal?.removeEventListener('abort', stop)
  }
}

/** Ends the wait of a pipe that is being opened by writing nothing to it. The kernel knows no other way. */
async function endWait(file: string, isOpen: AbortSignal): Promise<void> {
  while (!isOpen.aborted) {
    try {
      const handle = await open(file, constants.O_WRONLY | constants.O_NONBLOCK)
      return await handle.close()
    } catch (error) {
      // Nothing waits yet.
      if ((error as NodeJS.ErrnoException).code !== 'ENXIO') return
      await setTimeout(10)
    }
  }
}

class Bytes implements LogBytes {
  readonly name: string
  readonly totalBytes: number | undefined
  readBytes = 0
  readonly #from: FileHandle | Readable
  chunks!: AsyncGenerator<Buffer, void, void>

  constructor(name: string, from: FileHandle | Readable, totalBytes: number | undefined) {
    this.name = name
    this.totalBytes = totalBytes
    this.#from = from
  }

  get isFile(): boolean {
    return this.totalBytes !== undefined
  }

  raw(signal: AbortSignal | undefined): AsyncGenerator<Buffer, void, void> {
    return this.#from instanceof Readable ? this.#ofStream(this.#from, signal) : this.#ofFile(this.#from, signal)
  }

  async *#ofFile(handle: FileHandle, signal: AbortSignal | undefined): AsyncGenerator<Buffer, void, void> {
    const total = this.totalBytes as number
    const read = (position: number) => {
      const length = Math.min(CHUNK_BYTES, total - position)
      return handle.read(Buffer.allocUnsafe(Math.max(0, length)), 0, Math.max(0, length), position)
    }
    let next = read(0)
    try {
      while (!signal?.aborted && this.readBytes < total) {
        const { bytesRead, buffer } = await next
        if (bytesRead === 0) throw new DamagedLog(`${this.name} became shorter while it was read`)
        this.readBytes += bytesRead
        // The disk reads ahead of the parser.
        next = read(this.readBytes)
        yield buffer.subarray(0, bytesRead)
      }
    } catch (error) {
      throw damageOf(this.name, error)
    } finally {
      await next.catch(() => undefined)
      await handle.close()
    }
  }

  async *#ofStream(stream: Readable, signal: AbortSignal | undefined): AsyncGenerator<Buffer, void, void> {
    const stop = () => stream.destroy()
    signal?.addEventListener('abort', stop, { once: true })
    try {
      for await (const chunk of stream) {
        this.readBytes += chunk.length
        yield chunk
        if (signal?.aborted) return
      }
    } catch (error) {
      if (!signal?.aborted) throw damageOf(this.name, error)
    } finally {
      signal?.removeEventListener('abort', stop)
    }
  }
}

function damageOf(name: string, error: unknown): DamagedLog {
  if (error instanceof DamagedLog) return error
  return new DamagedLog(`${name} cannot be read to its end (${(error as NodeJS.ErrnoException).code})`)
}

/** Chunks that were read already, and those behind them. */
export async function* followed(
  first: readonly Buffer[],
  rest: AsyncGenerator<Buffer, void, void>,
): AsyncGenerator<Buffer, void, void> {
  try {
    yield* first
    yield* rest
  } finally {
    await rest.return()
  }
}

/** @param again opens a file once more, to read what is before a mistake */
async function* gunzipped(
  name: string,
  compressed: AsyncGenerator<Buffer, void, void>,
  again: (() => Promise<AsyncGenerator<Buffer, void, void>>) | undefined,
) {
  let first: Buffer | undefined
  let taken = 0
  let given = 0
  const noted = async function* () {
    for await (const chunk of compressed) {
      first = taken === 0 ? chunk : undefined
      taken += chunk.length
      yield chunk
    }
  }
  const source = Readable.from(noted(), { highWaterMark: 1 })
  // Its members are read one after the other, as `cat a.gz b.gz` writes them.
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES })
  pipeline(source, gunzip, () => undefined)
  try {
    for await (const chunk of gunzip) {
      given += (chunk as Buffer).length
      yield chunk as Buffer
    }
  } catch (error) {
    if (error instanceof DamagedLog) throw error
    const { code } = error as NodeJS.ErrnoException
    // zlib drops what it has of the chunk with the mistake, which is all of a small file.
    if (code === 'Z_DATA_ERROR' && first) yield* beforeGarbage(first)
    else if (code === 'Z_DATA_ERROR' && again) yield* beforeMistake(await again(), taken - 2 * CHUNK_BYTES, given)
    throw new DamagedLog(
      code === 'Z_BUF_ERROR' ? `${name} ends within its gzip data` : `${name} has damaged gzip data (${code})`,
    )
  } finally {
    source.destroy()
  }
}

/**
 * The rest of what is before a mistake: from a place in the compressed data, zlib gets small pieces, so that it drops little.
 *
 * @param given bytes that came before
 */
async function* beforeMistake(
  compressed: AsyncGenerator<Buffer, void, void>,
  from: number,
  given: number,
): AsyncGenerator<Buffer, void, void> {
  const pieces = async function* () {
    let at = 0
    for await (const chunk of compressed) {
      const size = at + chunk.length <= from ? chunk.length : SMALL_PIECE
      for (let start = 0; start < chunk.length; start += size) yield chunk.subarray(start, start + size)
      at += chunk.length
    }
  }
  const source = Readable.from(pieces(), { highWaterMark: 1 })
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES })
  pipeline(source, gunzip, () => undefined)
  let known = given
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      if (known < chunk.length) yield chunk.subarray(Math.max(0, known))
      known -= Math.min(known, chunk.length)
    }
  } catch {
    // The mistake, for the second time.
  } finally {
    source.destroy()
  }
}

const SMALL_PIECE = 128

/** The first member of gzip data that something else follows. Nothing where it is damaged itself. */
function beforeGarbage(data: Buffer): Buffer[] {
  const flags = data[3] as number
  let at = 10
  // https://datatracker.ietf.org/doc/html/rfc1952#section-2.3
  if (flags & 4) at += 2 + data.readUInt16LE(at)
  if (flags & 8) at = data.indexOf(0, at) + 1
  if (flags & 16) at = data.indexOf(0, at) + 1
  if (flags & 2) at += 2
  try {
    return [inflateRawSync(data.subarray(at), { finishFlush: zlib.Z_SYNC_FLUSH })]
  } catch {
    return []
  }
}

const FORMS: readonly (readonly [form: string, magic: readonly number[]])[] = [
  ['gzip', [0x1f, 0x8b]],
  ['bzip2 (decompress it by bzcat)', [0x42, 0x5a, 0x68]],
  ['xz (decompress it by xzcat)', [0xfd, 0x37, 0x7a, 0x58, 0x5a]],
  ['zstd (decompress it by zstdcat)', [0x28, 0xb5, 0x2f, 0xfd]],
  ['zip (decompress it by unzip -p)', [0x50, 0x4b, 3, 4]],
  ['UTF-16 (convert it by iconv)', [0xff, 0xfe]],
  ['UTF-16 (convert it by iconv)', [0xfe, 0xff]],
]
const LOOKED_AT = 4096

/** Undefined for text. */
function formOf(chunk: Buffer): string | undefined {
  const form = FORMS.find(([, magic]) => magic.every((byte, i) => chunk[i] === byte))?.[0]
  return form ?? (chunk.subarray(0, LOOKED_AT).includes(0) ? 'binary data' : undefined)
}

/** @throws SimulationError where two names are of one file, whose requests would count twice */
export async function checkTwice(logs: readonly LogSource[]): Promise<void> {
  const names = new Map<string, string>()
  for (const log of logs) {
    const stats = typeof log === 'string' && log !== '-' ? await stat(log).catch(() => undefined) : undefined
    if (!stats?.isFile()) continue
    const file = `${stats.dev}:${stats.ino}`
    const known = names.get(file)
    if (known !== undefined) {
      throw new SimulationError(
        known === nameOf(log) ? `${known} is named twice` : `${known} and ${nameOf(log)} are one file`,
      )
    }
    names.set(file, nameOf(log))
  }
}

/** The bytes of all files as they are. Infinite where one is a pipe; one that cannot be opened has none. */
export async function sizeOf(files: readonly string[]): Promise<number> {
  const sizes = files.map(async (file) => {
    if (file === '-') return Number.POSITIVE_INFINITY
    const stats = await stat(file).catch(() => undefined)
    return stats === undefined || stats.isFile() ? (stats?.size ?? 0) : Number.POSITIVE_INFINITY
  })
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

/** A chunk of whole lines as text. Bytes that are no UTF-8 become U+FFFD. */
export function textOf(chunk: Buffer): string {
  return chunk.toString(isAscii(chunk) ? 'latin1' : 'utf8')
}
