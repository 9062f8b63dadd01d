/** At most `size` holders at a time, within this process. */
export class Semaphore {
  #free: number

  constructor(size: number) {
    this.#free = size
  }

  /** Whether the caller holds it now. If it does, it calls `release` once. */
  tryAcquire(): boolean {
    if (this.#free === 0) return false
    this.#free--
    return true
  }

  release(): void {
    this.#free++
  }
}
