import { isPropertyOf } from '../../util/property-of.js'
import type { Outbox } from '../batching/outbox.js'
import type { Change, Layer } from '../layers/layer.js'

/** Notifies layers of changes. */
export class Changes {
  readonly #layers: readonly Layer[]
  readonly #outbox: Outbox

  /** `layers` may be filled later. */
  constructor(layers: readonly Layer[], outbox: Outbox) {
    this.#layers = layers
    this.#outbox = outbox
  }

  /** Makes a change. Its commands do not overtake earlier requests. */
  async make<T>(change: Change, run: () => Promise<T>): Promise<T> {
    const ends = this.#begin(change)
    this.#outbox.flush()
    try {
      return await run()
    } finally {
      for (const end of ends) end()
    }
  }

  /** Notifies layers of a change that Redis has already made. */
  note(change: Change): void {
    for (const end of this.#begin(change)) end()
  }

  #begin(change: Change): (() => void)[] {
    return this.#layers.flatMap((layer) => (isPropertyOf(layer, 'change') && layer.change?.(change)) || [])
  }
}
