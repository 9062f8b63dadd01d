import { Worker } from 'node:worker_threads'
import type { LogFormat } from '../../formats/format.js'
import { FORMATS, formatOf } from '../../formats/index.js'
import type { LogRecord } from '../../record.js'
import { SimulationError } from '../../simulation-error.js'
import type { LogsInOrder, ReadCounts } from '../open-logs.js'
import { type PackedRecords, type ReaderOf, unpack } from './packed.js'
import { WORKER } from './worker.generated.js'

/** As `openLogs` takes them. A signal of its own ends the thread's reading. */
export interface LogsToRead {
  readonly files: readonly string[]
  /** As `--format` gives it. */
  readonly format: string | undefined
  readonly isLenient: boolean
}

/** To the thread: a batch has been played, or reading ends. */
export type ToThread = 'played' | 'stop'

export type FromThread =
  | { readonly kind: 'opened'; readonly formats: readonly string[]; readonly bytesTotal: number | undefined }
  | { readonly kind: 'batch'; readonly records: PackedRecords; readonly counts: ReadCounts }
  | { readonly kind: 'end'; readonly counts: ReadCounts }
  | { readonly kind: 'failed'; readonly message: string; readonly isOfUser: boolean }

/** Beside the names of a million clients, the thread has little room: it needs some megabytes. */
const MEMORY = { maxYoungGenerationSizeMb: 8 }

/**
 * As `openLogs`, in a thread of its own: one core reads while another plays.
 *
 * @throws SimulationError
 */
export async function openApart(logs: LogsToRead, signal: AbortSignal | undefined): Promise<LogsInOrder> {
  // As text, so that no bundler has to find another file. Without the process's own flags, which may load whole programs.
  const worker = new Worker(WORKER, {
    eval: true,
    workerData: logs,
    execArgv: [],
    resourceLimits: MEMORY,
    name: 'sluice logs',
  })
  const thread = new Thread(worker)
  const stop = () => thread.send('stop')
  if (signal?.aborted) stop()
  signal?.addEventListener('abort', stop, { once: true })
  const opened = await thread.next()
  if (opened.kind !== 'opened') throw new Error(`expected logs, got ${opened.kind}`)
  return new LogsApart(thread, opened, logs.format)
}

/** The messages of a thread, one after the other. */
class Thread {
  readonly #worker: Worker
  readonly #messages: FromThread[] = []
  #error: Error | undefined
  #arrived: (() => void) | undefined

  constructor(worker: Worker) {
    this.#worker = worker
    worker.on('message', (message: FromThread) => {
      if (message.kind !== 'failed') this.#messages.push(message)
      else this.#error = message.isOfUser ? new SimulationError(message.message) : new Error(message.message)
      this.#arrived?.()
    })
    const fail = (error: Error) => {
      this.#error ??= error
      this.#arrived?.()
    }
    worker.once('error', fail)
    worker.once('exit', () => fail(new Error('the thread that reads the logs has ended')))
  }

  /** @throws SimulationError the error of the thread, behind what came before it */
  async next(): Promise<FromThread> {
    for (;;) {
      const message = this.#messages.shift()
      if (message) return message
      if (this.#error) throw this.#error
      await new Promise<void>((resolve) => (this.#arrived = resolve))
    }
  }

  send(message: ToThread): void {
    this.#worker.postMessage(message)
  }

  async end(): Promise<void> {
    await this.#worker.terminate()
  }
}

class LogsApart implements LogsInOrder {
  readonly formats: readonly string[]
  readonly bytesTotal: number | undefined
  counts: ReadCounts = {
    lines: 0,
    unread: 0,
    others: 0,
    examples: [],
    late: 0,
    isPartial: false,
    caveats: [],
    bytesRead: 0,
  }
  readonly #thread: Thread
  readonly #given: LogFormat | undefined

  constructor(thread: Thread, { formats, bytesTotal }: FromThread & { kind: 'opened' }, format: string | undefined) {
    this.formats = formats
    this.bytesTotal = bytesTotal
    this.#thread = thread
    this.#given = format === undefined ? undefined : formatOf(format)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly LogRecord[], void, void> {
    try {
      for (;;) {
        const message = await this.#thread.next()
        if ('counts' in message) this.counts = message.counts
        if (message.kind !== 'batch') return
        yield unpack(message.records, this.#readerBy)
        this.#thread.send('played')
      }
    } finally {
      await this.#thread.end()
    }
  }

  readonly #readerBy = ({ format, head }: ReaderOf) => {
    const known = this.#given ?? FORMATS.find(({ name }) => name === format)
    return (known as LogFormat).reader(head)
  }
}
