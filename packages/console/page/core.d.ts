export type { BlockEntry, ChangeEntry, StoreListEntry } from '../../core/src/store/entries.js'
export type { LastRefusal } from '../../core/src/store/last-refusals.js'
export type { OffendersReport } from '../../core/src/store/offenders.js'

/** In place of those of `@sluice/core`, which only names them more closely. */
export type DecisionOutcome = string
export interface OutboundEvent {
  readonly outcome: string
}

export interface Histogram {
  readonly bounds: readonly number[]
  readonly counts: readonly number[]
}
