import { Heap } from '../util/heap.js'

/** A ban among those that one table has room for. */
export interface RankedBan {
  /** Which step of its ladder it is, from 1. */
  readonly rung: number
  /** When it ends, in ms. */
  readonly until: number
  /** Where it stands in the order; set by the order alone. */
  place: number
}

/** Bans by which of them goes first where there is no room for all: the lowest rung, and of these the one that ends soonest. */
export class BanOrder<Ban extends RankedBan> extends Heap<Ban> {
  constructor() {
    super(goesBefore)
  }
}

/** Whether the first of two goes where there is no room for both. */
export function goesBefore(one: RankedBan, other: RankedBan): boolean {
  return one.rung === other.rung ? one.until < other.until : one.rung < other.rung
}
