import type { ReadReport } from './reply.js'

/**
 * A sliding window of segments. Time is cut at clock multiples of `segmentMs`, with one counter per segment. The window
 * proper is the current segment and the `segments - 1` before it. The segment before those is the edge, which lies only
 * partly in the window. `edge` says how the edge counts.
 *
 * State: the number of the newest segment (instant / segmentMs), `total` (units in the window proper), and one counter
 * per segment, newest first; `counts[segments]` is the edge. Invariant: counters and total <= limit, or the ceiling if
 * refusals count. That bound times windowMs is below 2^53, so no step below can round.
 */

/** The edge counts in full: never more than `limit` in any window. */
export const STRICT = 0
/** The edge does not count: quota returns early, a segment at a time. */
export const DROPPED = 1
/** The edge counts by its share in the window, rounded down or up. */
export const WEIGHTED_DOWN = 2
export const WEIGHTED_UP = 3

/** Added to the edge mode if refusals count, too. */
export const WITH_REFUSALS = 4

/**
 * Added to the edge mode if other limits count in the same state. The width of counters then does not depend on the
 * limit.
 */
export const WIDE = 8

/** Units of `total` that a shift by `by` segments moves out of the window proper. */
export function leaving(counts: ArrayLike<number>, by: number, segments: number): number {
  let units = 0
  for (let k = Math.max(0, segments - by); k < segments; k++) units += counts[k] as number
  return units
}

/** Units that the edge segment counts as, `offset` ms into the current segment. */
export function edgeUnits(count: number, offset: number, segmentMs: number, edge: number): number {
  if (edge === STRICT) return count
  if (edge === DROPPED) return 0
  const share = (count * (segmentMs - offset)) / segmentMs
  return edge === WEIGHTED_DOWN ? Math.floor(share) : Math.ceil(share)
}

/**
 * The least offset into a segment at which an edge of `count` units counts as `room` or less; `segmentMs` if there is
 * none.
 */
function offsetFor(count: number, room: number, segmentMs: number, edge: number): number {
  if (edge === DROPPED || count <= room) return 0
  if (edge === STRICT) return segmentMs
  if (edge === WEIGHTED_DOWN) return Math.floor((segmentMs * (count - room - 1)) / count) + 1
  return Math.ceil((segmentMs * (count - room)) / count)
}

/** Milliseconds from `offset` ms into the current segment until `cost` units have room: 0 now, -1 never. */
export function waitFor(
  counts: ArrayLike<number>,
  total: number,
  offset: number,
  cost: number,
  limit: number,
  segments: number,
  segmentMs: number,
  edge: number,
): number {
  if (cost > limit) return -1
  // A cost of 0 has room even if refusals exceed the limit.
  if (cost === 0) return 0
  let inside = total
  for (let by = 0; by <= segments; by++) {
    if (by > 0) inside -= counts[segments - by] as number
    if (inside + cost <= limit) {
      const from = offsetFor(counts[segments - by] as number, limit - cost - inside, segmentMs, edge)
      if (from < segmentMs) return Math.max(0, by * segmentMs + from - offset)
    }
  }
  return (segments + 1) * segmentMs - offset
}

/** Milliseconds until no unit counted so far has any effect. */
export function resetAfter(
  counts: ArrayLike<number>,
  offset: number,
  segments: number,
  segmentMs: number,
  edge: number,
): number {
  for (let k = 0; k <= segments; k++) {
    const count = counts[k] as number
    if (count > 0) return Math.max(0, (segments - k) * segmentMs + offsetFor(count, 0, segmentMs, edge) - offset)
  }
  return 0
}

export const readReport: ReadReport = (reply, values, _, __, need) => {
  const room = reply.uint56()
  const reset = reply.uint56()
  const segment = reply.uint48()
  if (need === undefined) values.push(room, 0, reset, segment)
  else values.push(room, reply.uint56() - 1, reset, reply.uint56() - 1)
}
