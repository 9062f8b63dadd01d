import type { Store } from '@sluice/core'

interface Running<Work> {
  users: number
  readonly work: Work
}

/** Work that goes on once for each store, for as long as somebody has it. */
export class OncePerStore<Work extends { stop(): void }> {
  readonly #running = new WeakMap<Store, Running<Work>>()

  /** The work for a store, while it goes on. */
  of(store: Store): Work | undefined {
    return this.#running.get(store)?.work
  }

  /** Starts it, unless it goes on. Returns a function that ends it once all who started it have called theirs. */
  start(store: Store, begin: () => Work): () => void {
    const running = this.#running.get(store) ?? { users: 0, work: begin() }
    this.#running.set(store, running)
    running.users++
    let isOn = true
    return () => {
      if (!isOn) return
      isOn = false
      if (--running.users > 0) return
      this.#running.delete(store)
      running.work.stop()
    }
  }
}
