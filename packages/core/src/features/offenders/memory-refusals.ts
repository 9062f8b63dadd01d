import type { OffendersWindow } from '../../store/offenders.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { trimCounts } from '../../util/trim-counts.js'
import { KEPT, type RefusalCounts, type RefusalSlice, type RefusalSlices, SLICES, WINDOWS } from './refusal-log.js'

interface Slice {
  readonly counts: Map<string, number>
  refusals: number
  error: number
}

const NOTHING: RefusalSlice = { counts: [], refusals: 0, error: 0 }

/** Counts the refusals of identities in this process. Does the same as lua/refusals.lua. */
export class MemoryRefusals implements RefusalSlices {
  readonly now: () => number
  /** The slices by the name of the policy and the window, and by the number of the slice. */
  readonly #byName = new Map<string, Map<number, Slice>>()

  constructor(now: () => number) {
    this.now = now
  }

  async add({ policy, counts, refusals, error }: RefusalCounts): Promise<void> {
    for (const [window, ms] of Object.entries(WINDOWS)) {
      const slice = this.#sliceOf(`${window} ${policy}`, Math.floor((this.now() * SLICES) / ms))
      for (const [identity, count] of counts) slice.counts.set(identity, (slice.counts.get(identity) ?? 0) + count)
      slice.refusals += refusals
      // Trimmed in large steps, as each sorts all counts.
      slice.error += error + (slice.counts.size > 2 * KEPT ? trimCounts(slice.counts, KEPT) : 0)
    }
  }

  async read(policy: string, window: OffendersWindow, number: number): Promise<RefusalSlice> {
    return this.#byName.get(`${window} ${policy}`)?.get(number) ?? NOTHING
  }

  forget(identity: string): void {
    for (const slices of this.#byName.values()) for (const { counts } of slices.values()) counts.delete(identity)
  }

  clear(): void {
    this.#byName.clear()
  }

  #sliceOf(name: string, number: number): Slice {
    const slices = getOrInsert(this.#byName, name, () => new Map<number, Slice>())
    let slice = slices.get(number)
    if (!slice) {
      slice = { counts: new Map(), refusals: 0, error: 0 }
      slices.set(number, slice)
      for (const other of [...slices.keys()]) if (other < number - SLICES) slices.delete(other)
    }
    return slice
  }
}
