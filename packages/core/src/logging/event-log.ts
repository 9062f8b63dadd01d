import { events } from '../limiter/all-events.js'
import type { SluiceEvents } from '../limiter/events.js'
import { Listeners } from '../util/listeners.js'
import { LineBudget } from './line-budget.js'

export interface Line {
  readonly level: 'info' | 'warn'
  readonly fields: object
  readonly message: string
}

/** Lines from the events of this process: of each event so many a second, and one line for how many more there were. */
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

  /** `toLine` returns undefined for what is no news; `written` is called with what has been written. */
  on<Name extends keyof SluiceEvents>(
    name: Name,
    toLine: (event: SluiceEvents[Name]) => (Line & { written?: () => void }) | undefined,
  ): void {
    const budget = new LineBudget(this.#linesPerSecond, (count) => {
      const fields = { event: 'lines-left-out', of: name, lines: count }
      this.#lines.send('line', { level: 'warn', fields, message: `${count} lines of ${name} left out` })
    })
    const stop = events.on(name, (event) => {
      const line = toLine(event)
      if (!line || !budget.take()) return
      const { level, fields, message, written } = line
      this.#lines.send('line', { level, fields: { event: name, ...fields }, message })
      written?.()
    })
    this.#ends.unshift(() => {
      stop()
      budget.end()
    })
  }

  end(): void {
    for (const end of this.#ends.splice(0)) end()
  }
}
