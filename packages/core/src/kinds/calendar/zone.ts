import { getOrInsert } from '../../util/get-or-insert.js'

const SECOND_MS = 1000
/** More than local times differ from UTC anywhere, in the past too. */
const FARTHEST_MS = 26 * 3_600_000

/**
 * A time zone, by the data of this Node. `Intl` converts an instant to a local time exactly; a date's first instant is searched
 * for, so that no rule of clock changes is needed here.
 */
export class Zone {
  readonly #format: Intl.DateTimeFormat

  /** @throws RangeError for an unknown name */
  constructor(name: string) {
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      hourCycle: 'h23',
      calendar: 'gregory',
      numberingSystem: 'latn',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  }

  /** The local time at an instant, in ms as if it were UTC. */
  localAt(at: number): number {
    const parts: Record<string, number> = {}
    for (const { type, value } of this.#format.formatToParts(at)) parts[type] = Number(value)
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
    return Date.UTC(year, month - 1, day, hour, minute, second) + (at - Math.floor(at / SECOND_MS) * SECOND_MS)
  }

  /**
   * The first instant of a date, which is given as its midnight in UTC. Where clocks go back over midnight, that is the first of
   * two midnights. Where they skip midnight or the date, it is the instant at which they do.
   */
  startOf(date: number): number {
    const before = date - FARTHEST_MS
    const first = date - (this.localAt(before) - before)
    if (this.localAt(first) === date) return first
    // Clocks have changed since. They change at whole seconds.
    let [low, high] = [before / SECOND_MS, (date + FARTHEST_MS) / SECOND_MS]
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (this.localAt(middle * SECOND_MS) >= date) high = middle
      else low = middle
    }
    return high * SECOND_MS
  }
}

const zones = new Map<string, Zone>()

/** @throws RangeError for an unknown name */
export function zoneOf(name: string): Zone {
  return getOrInsert(zones, name, () => new Zone(name))
}
