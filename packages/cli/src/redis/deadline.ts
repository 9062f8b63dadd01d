/** The time for everything together. */
export class Deadline {
  readonly #endsAt: number

  constructor(ms: number) {
    this.#endsAt = performance.now() + ms
  }

  /** Milliseconds that are left; 0 when it is over. */
  get leftMs(): number {
    return Math.max(0, this.#endsAt - performance.now())
  }

  /** Resolves or rejects as `promise` does, or rejects after `maxMs` or at the deadline, whichever comes first. */
  async within<T>(promise: Promise<T>, maxMs: number): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    const { leftMs } = this
    const over = new Promise<never>((_, reject) => {
      const error = () => new Error(leftMs < maxMs ? 'the time is up' : 'timed out')
      timer = setTimeout(() => reject(error()), Math.min(maxMs, leftMs))
    })
    try {
      return await Promise.race([promise, over])
    } finally {
      clearTimeout(timer)
    }
  }
}
