/** Reads the numbers of a reply, in the order in which a script wrote them. */
export interface Reply {
  uint32(): number
  uint48(): number
  uint56(): number
  /** The error for a reply that says what cannot be. */
  unreadable(why: string): Error
}

/**
 * Appends to `values` what each limit of a cell reports, from what the cell's `report` wrote in Lua; in a refusal, which has
 * no receipt, the ms until there are more units instead (-1 never). `need`: what was asked about, in units; undefined where it
 * was admitted. `later`: how many of the units that the state has were charged after the decision, at the same instant.
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
