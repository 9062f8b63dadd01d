/** Interval between two reads of other processes' changes, plus or minus a tenth. */
const LOOK_EVERY_MS = 1000

/** Polls for changes by other processes, one read at a time. Its timers do not keep the process alive. */
export class Looks {
  readonly #look: () => Promise<void>
  #timer: NodeJS.Timeout | undefined
  #isLooking = false
  #isClosed = false
  #hasLooked: () => void = () => {}
  /** Resolves after the first read. */
  readonly first = new Promise<void>((resolve) => {
    this.#hasLooked = resolve
  })

  /** `look` never rejects. */
  constructor(look: () => Promise<void>) {
    this.#look = look
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  start(): void {
    if (!this.#timer) this.#lookIn(LOOK_EVERY_MS * (0.9 + 0.2 * Math.random()))
  }

  lookNow(): void {
    clearTimeout(this.#timer)
    this.#lookIn(0)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #lookIn(ms: number): void {
    if (!this.#isClosed) this.#timer = setTimeout(() => this.#run(), ms).unref()
  }

  async #run(): Promise<void> {
    this.#timer = undefined
    if (this.#isLooking) return
    this.#isLooking = true
    await this.#look()
    this.#isLooking = false
    this.#hasLooked()
    this.start()
  }
}
