// Limits whose counts go beyond their amounts.
import type { Resolution } from './limits/limit.js'

/** The same limit for a unit that may be settled above its estimate: its counters go beyond the limit. */
export function countingDebts(resolution: Resolution): Resolution {
  const { kind, params } = resolution
  return { ...resolution, params: kind.widen?.(params) ?? params }
}

/**
 * The same limit for a policy that charges refusals: counters of windows go beyond the limit then, so that each refusal counts
 * in full. A log needs no more than its newest entries for that. A bucket that is full stays full: its clients could need
 * months to pay off an excess.
 */
export function countingRefusals(resolution: Resolution): Resolution {
  const { kind, id, carriedId, params } = resolution
  const { countRefusals } = kind
  if (!countRefusals) return resolution
  // A different id: without refusals, counters go up to the limit, and take as many bytes as that needs.
  return { ...resolution, id: `${id}.refusals`, carriedId: `${carriedId}.refusals`, params: countRefusals(params) }
}
