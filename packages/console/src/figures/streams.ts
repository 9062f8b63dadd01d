import type { ServerResponse } from 'node:http'
import type { Operator } from '../options.js'
import { Problem } from '../problem.js'
import type { EndMessage, FiguresAnswer, StreamMessage } from './answers.js'
import { Listener } from './listener.js'

/** Streams of a console, and of one operator. */
export const MAX_STREAMS = 100
export const MAX_OF_OPERATOR = 10
const EVERY_MS = 1000
/** Without a line for as long, one says that the stream is alive, in ms. */
const QUIET_MS = 10_000
const AGAIN_MS = 5000

/** How the streams of a console get what they send. */
export interface StreamSource {
  read(): Promise<FiguresAnswer>
  /** The error as a problem for the one who reads. */
  problemOf(error: unknown): Problem
  /** A line of the stream. */
  text(message: StreamMessage): string
}

/** The open streams of a console: each second, the store is read once for all of them. */
export class Streams {
  readonly #source: StreamSource
  readonly #listeners = new Set<Listener>()
  #timer: NodeJS.Timeout | undefined
  #isReading = false
  #isFailing = false
  #isClosed = false
  /** When the last line was sent. */
  #sentAt = performance.now()

  constructor(source: StreamSource) {
    this.#source = source
  }

  /**
   * Refuses streams beyond the bounds, before anything is sent.
   *
   * @throws Problem
   */
  check({ name }: Operator): void {
    if (this.#isClosed) throw new Problem(503, 'the console is closed')
    const own = [...this.#listeners].filter(({ operator }) => operator === name).length
    if (own >= MAX_OF_OPERATOR) throw tooMany(`${MAX_OF_OPERATOR} of one operator`)
    if (this.#listeners.size >= MAX_STREAMS) throw tooMany(`${MAX_STREAMS}`)
  }

  /** Sends figures until the stream ends. @param ask the operator once more, who may be refused */
  open(response: ServerResponse, { name }: Operator, ask: () => Promise<unknown>): void {
    const listener = new Listener(response, name, ask)
    this.#listeners.add(listener)
    response.once('close', () => this.#remove(listener))
    if (this.#timer) return
    this.#timer = setInterval(() => void this.#tick(), EVERY_MS).unref()
    void this.#tick()
  }

  /** Ends every stream. */
  close(): void {
    this.#isClosed = true
    for (const listener of this.#listeners) this.#end(listener, 'closed', 'the console has ended')
  }

  #remove(listener: Listener): void {
    this.#listeners.delete(listener)
    if (this.#listeners.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async #tick(): Promise<void> {
    for (const listener of this.#listeners) void this.#tend(listener)
    if (this.#isReading) {
      if (this.#isQuiet) this.#send({ type: 'heartbeat' })
      return
    }
    this.#isReading = true
    try {
      this.#send({ type: 'figures', ...(await this.#source.read()) })
      this.#isFailing = false
    } catch (error) {
      const { status, message } = this.#source.problemOf(error)
      if (!this.#isFailing || this.#isQuiet) this.#send({ type: 'problem', status, detail: message })
      this.#isFailing = true
    } finally {
      this.#isReading = false
    }
  }

  get #isQuiet(): boolean {
    return performance.now() - this.#sentAt >= QUIET_MS
  }

  async #tend(listener: Listener): Promise<void> {
    if (listener.isOver) this.#end(listener, 'time', 'a stream lasts for an hour: open another one')
    else if (!(await listener.mayGoOn())) this.#end(listener, 'refused', 'this request may not use the console')
  }

  #send(message: StreamMessage): void {
    const line = this.#lineOf(message)
    this.#sentAt = performance.now()
    for (const listener of this.#listeners) listener.send(line)
  }

  #end(listener: Listener, reason: EndMessage['reason'], detail: string): void {
    this.#remove(listener)
    listener.end(this.#lineOf({ type: 'end', reason, detail }))
  }

  #lineOf(message: StreamMessage): Buffer {
    return Buffer.from(`${this.#source.text(message)}\n`)
  }
}

function tooMany(bound: string): Problem {
  const message = `the console has no more than ${bound} streams at a time: poll api/figures instead`
  return new Problem(503, message, { retryAfterMs: AGAIN_MS })
}
