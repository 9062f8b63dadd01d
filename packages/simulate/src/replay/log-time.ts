import { Heap, type Timer, type Timing } from '@sluice/core/internal'

/** A timer in log time. */
class LogTimer implements Timer {
  at = 0
  /** Timers of one instant are due in the order in which they were set. */
  order = 0
  readonly callback: () => void
  readonly everyMs: number | undefined
  place = 0
  isSet = false

  constructor(callback: () => void, everyMs: number | undefined) {
    this.callback = callback
    this.everyMs = everyMs
  }

  unref(): this {
    return this
  }
}

/**
 * The time of a log: it stands still but for `advance`, which runs the timers that are due.
 */
export class LogTime implements Timing {
  #now: number
  #orders = 0
  readonly #timers = new Heap<LogTimer>((one, other) =>
    one.at === other.at ? one.order < other.order : one.at < other.at,
  )

  constructor(startMs: number) {
    this.#now = startMs
  }

  now(): number {
    return this.#now
  }

  /** The instant of the next timer. Undefined if none is set. */
  get nextAt(): number | undefined {
    return this.#timers.first?.at
  }

  /** Moves to a later time. A promise only where timers are due before. */
  advance(to: number): void | Promise<void> {
    const { first } = this.#timers
    if (first && first.at <= to) return this.#run(to)
    if (to > this.#now) this.#now = to
  }

  async #run(to: number): Promise<void> {
    for (let { first } = this.#timers; first && first.at <= to; first = this.#timers.first) {
      this.#timers.delete(first)
      first.isSet = false
      this.#now = Math.max(this.#now, first.at)
      if (first.everyMs !== undefined) this.#add(first, first.everyMs)
      first.callback()
      await settled()
    }
    if (to > this.#now && to < Number.POSITIVE_INFINITY) this.#now = to
  }

  setTimeout(callback: () => void, ms: number): Timer {
    return this.#set(callback, ms, undefined)
  }

  clearTimeout(timer: Timer | undefined): void {
    if (!(timer instanceof LogTimer) || !timer.isSet) return
    timer.isSet = false
    this.#timers.delete(timer)
  }

  setInterval(callback: () => void, ms: number): Timer {
    return this.#set(callback, ms, ms)
  }

  clearInterval(timer: Timer | undefined): void {
    this.clearTimeout(timer)
  }

  #set(callback: () => void, ms: number, everyMs: number | undefined): Timer {
    return this.#add(new LogTimer(callback, everyMs), ms)
  }

  #add(timer: LogTimer, ms: number): LogTimer {
    // As Node's: whole milliseconds, at least one.
    timer.at = this.#now + Math.max(1, Math.trunc(ms))
    timer.order = this.#orders++
    timer.isSet = true
    this.#timers.add(timer)
    return timer
  }
}

/** Resolves once no promise is left that could go on without a timer. Other events of the process wait meanwhile. */
export async function settled(): Promise<void> {
  // From a microtask, a tick comes after all other microtasks.
  await undefined
  await new Promise<void>((resolve) => process.nextTick(resolve))
}
