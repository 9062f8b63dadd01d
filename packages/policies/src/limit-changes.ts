/** The clock may be set meanwhile. */
const LONGEST_TIMER_MS = 3_600_000
/** Requests that wait look up their limits at each change. Overrides are written one after the other, and may be many. */
const CALM_MS = 1000

/**
 * Calls back when the limits of clients may have changed: by another document, by an override beside it, or because an override
 * has ended that was in force for a request.
 */
export class LimitChanges {
  readonly #listeners = new Set<() => void>()
  /** The next end of an override, in ms since 1970. */
  #nextEnd = Number.POSITIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #sentAt = Number.NEGATIVE_INFINITY
  #later: NodeJS.Timeout | undefined

  /** Returns a function that ends the calls. */
  on(listener: () => unknown): () => void {
    const callback = () => void listener()
    this.#listeners.add(callback)
    return () => {
      this.#listeners.delete(callback)
      if (this.#listeners.size === 0) this.#forgetEnd()
    }
  }

  /** Overrides have changed: calls back at once, and for the next ones a second after that. */
  sendCalmly(): void {
    if (this.#listeners.size === 0) return
    const inMs = this.#sentAt + CALM_MS - performance.now()
    if (inMs <= 0) this.send()
    else this.#later ??= setTimeout(() => this.send(), inMs).unref()
  }

  send(): void {
    clearTimeout(this.#later)
    this.#later = undefined
    this.#sentAt = performance.now()
    for (const listener of [...this.#listeners]) listener()
  }

  /** Takes the end of an override that is in force for a request. Without listeners, no request waits. */
  noteEnd(until: number | undefined): void {
    if (until === undefined || until >= this.#nextEnd || this.#listeners.size === 0) return
    clearTimeout(this.#timer)
    this.#nextEnd = until
    const inMs = Math.max(0, until - Date.now())
    this.#timer = setTimeout(() => this.#end(until), Math.min(inMs, LONGEST_TIMER_MS)).unref()
  }

  #end(until: number): void {
    this.#forgetEnd()
    if (until > Date.now()) this.noteEnd(until)
    else this.sendCalmly()
  }

  #forgetEnd(): void {
    clearTimeout(this.#timer)
    this.#nextEnd = Number.POSITIVE_INFINITY
  }
}
