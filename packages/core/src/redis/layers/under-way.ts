/** Work of a layer that the layers beneath do not know of for a while. */
export class UnderWay {
  readonly #all = new Set<Promise<unknown>>()

  note<T>(done: Promise<T>): Promise<T> {
    this.#all.add(done)
    const over = () => this.#all.delete(done)
    done.then(over, over)
    return done
  }

  /** Resolves once all work is done or has failed. */
  async over(): Promise<void> {
    await Promise.allSettled(this.#all)
  }
}
