import type { StoreResult } from '../../store/store.js'

/** Decisions of a layer of which nothing is with the layers beneath for a while. */
export class UnderWay {
  readonly #all = new Set<Promise<StoreResult>>()

  note(decision: Promise<StoreResult>): Promise<StoreResult> {
    this.#all.add(decision)
    const over = () => this.#all.delete(decision)
    decision.then(over, over)
    return decision
  }

  /** Resolves once all have been decided or failed. */
  async over(): Promise<void> {
    await Promise.allSettled(this.#all)
  }
}
