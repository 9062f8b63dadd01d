import { vi } from 'vitest'

interface FakeTimer {
  at: number
  order: number
  readonly callback: () => void
  readonly everyMs: number | undefined
}

/** Replaces the timers and the monotonic clock of this process, and turns them. Sockets go on as usual. */
export class TurnedClock {
  now: number
  readonly #timers = new Set<FakeTimer>()
  #orders = 0
  #restore: (() => void) | undefined

  constructor(startMs: number) {
    this.now = startMs
  }

  install(): void {
    const real = { setTimeout, clearTimeout, setInterval, clearInterval }
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => this.now)
    const set =
      (repeats: boolean) =>
      (callback: (...args: unknown[]) => void, ms = 1, ...args: unknown[]) => {
        const everyMs = Math.max(1, Math.trunc(ms))
        const timer: FakeTimer & { unref?: unknown } = {
          at: this.now + everyMs,
          order: this.#orders++,
          callback: () => callback(...args),
          everyMs: repeats ? everyMs : undefined,
        }
        Object.assign(timer, { unref: () => timer, ref: () => timer, refresh: () => timer, hasRef: () => true })
        this.#timers.add(timer)
        return timer
      }
    const clear = (timer: unknown) => void this.#timers.delete(timer as FakeTimer)
    Object.assign(globalThis, {
      setTimeout: set(false),
      clearTimeout: clear,
      setInterval: set(true),
      clearInterval: clear,
    })
    this.#restore = () => {
      Object.assign(globalThis, real)
      clock.mockRestore()
    }
  }

  restore(): void {
    this.#restore?.()
  }

  /** Runs each timer that is due until an instant, and waits after each until all is quiet. */
  async turnTo(until: number, quiet: () => Promise<void>): Promise<void> {
    for (let next = this.#next(); next && next.at <= until; next = this.#next()) {
      this.now = next.at
      this.#timers.delete(next)
      if (next.everyMs !== undefined) {
        next.at = this.now + next.everyMs
        next.order = this.#orders++
        this.#timers.add(next)
      }
      next.callback()
      await quiet()
    }
    this.now = Math.max(this.now, until)
  }

  #next(): FakeTimer | undefined {
    let first: FakeTimer | undefined
    for (const timer of this.#timers) {
      if (!first || timer.at < first.at || (timer.at === first.at && timer.order < first.order)) first = timer
    }
    return first
  }
}
