/** A ban among those that one table has room for: a heap of them, by `goesBefore`. */
export interface RankedBan {
  /** Which step of its ladder it is, from 1. */
  readonly rung: number
  /** When it ends, in ms. */
  readonly until: number
  /** Where it stands in the heap of them. */
  place: number
}

/** Which of two goes first where there is no room for all: that of the lower rung, and of one rung the one that ends sooner. */
export function goesBefore(one: RankedBan, other: RankedBan): boolean {
  return one.rung === other.rung ? one.until < other.until : one.rung < other.rung
}
