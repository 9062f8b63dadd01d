import type { Outbox } from '../batching/outbox.js'
import type { Change, Layer } from '../layers/layer.js'

/** Tells layers of changes. */
export class Changes {
  readonly #layers: readonly Layer[]
  readonly #outbox: Outbox

  /** `layers` may be filled later. */
  constructor(layers: readonly Layer[], outbox: Outbox) {
    this.#layers = layers
    this.#outbox = outbox
  }

  /** Makes a change by commands that do not overtake what was asked for before. */
  async make<T>(change: Change, run: () => Promise<T>): Promise<T> {
    const ends = this.#begin(change)
    this.#outbox.flush()
    try {
      return await run()
    } finally {
      for (const end of ends) end()
    }
  }

  /** Notes a change that Redis has made already. */
  note(change: Change): void {
    for (const end of this.#begin(change)) end()
  }

  #begin(change: Change): (() => void)[] {
    return this.#layers.flatMap((layer) => layer.change?.(change) ?? [])
  }
}
