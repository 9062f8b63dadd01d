/** Reads the numbers of a reply, in the order in which a script wrote them. */
export interface Reply {
  uint32(): number
  uint48(): number
  uint56(): number
  /** The error for an impossible reply. */
  unreadable(why: string): Error
}

/**
 * Appends the report of each limit of a cell to `values`, read from the output of the cell's `report` in Lua. A refusal
 * has no receipt; its last value is the ms until there are more units (-1 never).
 *
 * `need`: the requested units; undefined if they were admitted. `later`: the units in the state that were charged after
 * the decision, at the same instant.
 */
export type ReadReport = (
  reply: Reply,
  values: number[],
  params: readonly number[],
  now: number,
  need: number | undefined,
  later: number,
) => void

export function atLeastNone(reply: Reply, units: number): number {
  if (units < 0) throw reply.unreadable('expected no more to be taken than the limit, and no less than none')
  return units
}
