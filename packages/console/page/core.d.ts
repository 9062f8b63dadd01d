/** In place of those of `@sluice/core`, which only names them more closely. */
export type DecisionOutcome = string

export interface Histogram {
  readonly bounds: readonly number[]
  readonly counts: readonly number[]
}
