const SECOND_MS = 1000

/** Admits a number of lines each second, and reports how many were left out. */
export class LineBudget {
  readonly #most: number
  readonly #onLeftOut: (lines: number) => void
  #lines = 0
  #leftOut = 0
  #timer: NodeJS.Timeout | undefined

  /** `onLeftOut`: called after each second that had more lines. */
  constructor(most: number, onLeftOut: (lines: number) => void) {
    this.#most = most
    this.#onLeftOut = onLeftOut
  }

  /** Whether one more line may be written. */
  take(): boolean {
    // Not by the clock: the timer that ends the second also reports what was left out.
    this.#timer ??= setTimeout(() => this.#turn(), SECOND_MS).unref()
    if (this.#lines < this.#most) {
      this.#lines++
      return true
    }
    this.#leftOut++
    return false
  }

  /** Logs how much has been left out, and ends the timer. */
  end(): void {
    clearTimeout(this.#timer)
    this.#turn()
  }

  #turn(): void {
    const leftOut = this.#leftOut
    this.#timer = undefined
    this.#lines = 0
    this.#leftOut = 0
    if (leftOut > 0) this.#onLeftOut(leftOut)
  }
}
