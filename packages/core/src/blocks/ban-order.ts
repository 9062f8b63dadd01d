/** A ban in the heap of a table with limited room, ordered by `goesBefore`. */
export interface RankedBan {
  /** Its rung, from 1. */
  readonly rung: number
  /** When it ends, in ms. */
  readonly until: number
  /** Its place in the heap. */
  place: number
}

/** Whether `one` is evicted before `other`: the lower rung first, and within a rung the ban that ends sooner. */
export function goesBefore(one: RankedBan, other: RankedBan): boolean {
  return one.rung === other.rung ? one.until < other.until : one.rung < other.rung
}
