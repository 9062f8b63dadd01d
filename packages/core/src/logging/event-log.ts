import { events } from '../limiter/all-events.js'
import type { SluiceEvents } from '../limiter/events.js'
import { Listeners } from '../util/listeners.js'

export interface Line {
  readonly level: 'info' | 'warn'
  readonly fields: object
  readonly message: string
}

const SECOND_MS = 1000

/**
 * Writes lines for the events of this process: a bounded number of each event a second, and one line with the number of the
 * others.
 */
export class EventLog {
  /** A logger that fails is a listener that fails, also where a timer writes. */
  readonly #lines: Listeners<{ line: Line }>
  readonly #linesPerSecond: number
  readonly #ends: (() => void)[] = []

  constructor(where: string, linesPerSecond: number, write: (line: Line) => void) {
    this.#lines = new Listeners(where, ['line'], null)
    this.#linesPerSecond = linesPerSecond
    this.#ends.push(this.#lines.on('line', write))
  }

  /** `toLine` returns undefined for an event that needs no line. `written` is called with each written event. */
  on<Name extends keyof SluiceEvents>(
    name: Name,
    toLine: (event: SluiceEvents[Name]) => (Line & { written?: () => void }) | undefined,
  ): void {
    let taken = 0
    let timer: NodeJS.Timeout | undefined
    const endSecond = () => {
      const leftOut = taken - this.#linesPerSecond
      timer = undefined
      taken = 0
      if (leftOut <= 0) return
      const fields = { event: 'lines-left-out', of: name, lines: leftOut }
      this.#lines.send('line', { level: 'warn', fields, message: `${leftOut} lines of ${name} left out` })
    }
    const stop = events.on(name, (event) => {
      const line = toLine(event)
      if (!line) return
      // Not by the clock: the timer that ends the second also reports what was left out.
      timer ??= setTimeout(endSecond, SECOND_MS).unref()
      if (++taken > this.#linesPerSecond) return
      const { level, fields, message, written } = line
      this.#lines.send('line', { level, fields: { event: name, ...fields }, message })
      written?.()
    })
    this.#ends.unshift(() => {
      stop()
      clearTimeout(timer)
      endSecond()
    })
  }

  end(): void {
    for (const end of this.#ends.splice(0)) end()
  }
}
