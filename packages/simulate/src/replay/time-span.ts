import { instantText, quoted } from '@sluice/core/internal'
import { isoTime } from '../formats/times.js'
import type { LogRecord } from '../record.js'
import { SimulationError } from '../simulation-error.js'

/** The part of the logs between two times. */
export class TimeSpan {
  readonly #sinceMs: number
  readonly #untilMs: number
  #firstMs = Number.POSITIVE_INFINITY
  #lastMs = Number.NEGATIVE_INFINITY
  #isEmpty = true

  constructor(sinceMs: number, untilMs: number) {
    this.#sinceMs = sinceMs
    this.#untilMs = untilMs
  }

  /** Those of these records, which are in the order of time. */
  within(records: readonly LogRecord[]): readonly LogRecord[] {
    this.#firstMs = Math.min(this.#firstMs, records[0]?.startMs ?? this.#firstMs)
    this.#lastMs = Math.max(this.#lastMs, records.at(-1)?.startMs ?? this.#lastMs)
    const found = records.filter(({ startMs }) => startMs >= this.#sinceMs && startMs < this.#untilMs)
    if (found.length > 0) this.#isEmpty = false
    return found
  }

  /** @throws SimulationError where no request was within */
  check(): void {
    if (!this.#isEmpty || this.#lastMs < this.#firstMs) return
    const [first, last] = [instantText(this.#firstMs), instantText(this.#lastMs)]
    throw new SimulationError(`--since and --until leave out every request: the logs are from ${first} to ${last}`)
  }
}

/** @throws SimulationError for a text that is no time */
export function spanOf(since: string | undefined, until: string | undefined): TimeSpan | undefined {
  if (since === undefined && until === undefined) return undefined
  const sinceMs = since === undefined ? Number.NEGATIVE_INFINITY : timeOf('since', since)
  const untilMs = until === undefined ? Number.POSITIVE_INFINITY : timeOf('until', until)
  if (sinceMs < untilMs) return new TimeSpan(sinceMs, untilMs)
  throw new SimulationError(`--until: expected a time after --since, got ${quoted(until as string)}`)
}

/** Of a date, or of a date and a time with or without seconds. */
function timeOf(option: string, text: string): number {
  const whole = text.replace(/^(\d{4}-\d\d-\d\d)$/, '$1T00:00:00').replace(/([T ]\d\d:\d\d)(?=$|Z|[+-])/, '$1:00')
  const instant = isoTime(whole)
  if (instant) return instant.ms
  throw new SimulationError(`--${option}: expected a time such as 2026-03-01T12:00:00Z, got ${quoted(text)}`)
}
