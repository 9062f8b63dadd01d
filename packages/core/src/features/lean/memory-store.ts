import { kindOfCell } from '../../kinds/known.js'
import { MemoryBase } from '../../memory/base.js'
import { dated } from '../../memory/clock.js'
import { Counts } from '../../memory/counts.js'
import type { MemoryLayer } from '../../memory/layer.js'
import type { StoreHealth } from '../../store/health.js'
import type { Plan, Store, StoreRequest, StoreResult } from '../../store/store.js'
import { COPY, THIS_COPY } from '../../util/copies.js'
import { fieldsOf, propertiesOf } from '../../util/property-of.js'
import { knownOptions } from '../../util/validate.js'
import type { MemoryStoreOptions } from '../memory-store.js'
import type { LeanFeature } from './lean-feature.js'

/** The options of a memory store of single features. */
export type LeanStoreOptions = Pick<MemoryStoreOptions, 'clock' | 'maxKeys' | 'maxBytes'>

const OPTIONS = ['clock', 'maxKeys', 'maxBytes'] as const
const WHOLE = 'take memoryStore of @sluice/core, which has all features'
const OF_WHOLE = { persist: WHOLE, offenders: WHOLE, allow: WHOLE, deny: WHOLE, warnings: WHOLE }

/**
 * A store in this process with the layers of some features. Its limits bring their kinds.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function leanStore(features: readonly LeanFeature[], options: LeanStoreOptions): Store {
  knownOptions('memoryStore', options, OPTIONS, OF_WHOLE)
  return new LeanStore(features, fieldsOf(options, OPTIONS))
}

/** A memory store with some features: the layer of the last one is the first. */
class LeanStore implements Store {
  readonly clock: (() => number) | undefined
  readonly #base: MemoryBase
  readonly #layer: MemoryLayer
  readonly #layers: readonly MemoryLayer[]
  readonly #since = Date.now()

  constructor(features: readonly LeanFeature[], options: LeanStoreOptions) {
    const base = new MemoryBase(options, (cell) => kindOfCell(cell).table)
    this.#base = base
    this.clock = base.givenClock
    const layers: MemoryLayer[] = [new Counts(base)]
    for (const memory of propertiesOf(features, 'memory')) {
      const layer = memory(base, layers[0] as MemoryLayer)
      layers.unshift(layer.layer)
      Object.assign(this, layer.members)
    }
    base.swept.push(() => base.states)
    this.#layers = layers
    this.#layer = layers[0] as MemoryLayer
  }

  get [COPY](): string {
    return THIS_COPY
  }

  /** `now`: replaces the clock's time, to charge a use that is known from an earlier instant. */
  decide(request: StoreRequest, now = this.#base.now()): StoreResult {
    return dated(this.#layer.decide(request, now), this.#base.bounds.wall)
  }

  reset(plan: Plan, identities: readonly string[]): void {
    this.#layer.reset(plan, identities)
  }

  async health(): Promise<StoreHealth> {
    return { state: 'available', since: this.#since, roundTripMs: 0, pending: 0, cause: undefined }
  }

  clear(): void {
    this.#base.clear()
    for (const layer of this.#layers) layer.clear()
  }

  async close(): Promise<void> {
    this.clear()
  }
}
