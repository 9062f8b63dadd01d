import { CELL_KINDS } from '../../store/cell-kinds.js'
import { SluiceError } from '../../util/errors.js'
import type { Resolution } from './limit.js'

/**
 * The same limit for a policy that charges refusals: counters of windows go beyond the limit then, so that each refusal counts
 * in full. A log needs no more than its newest entries for that, and a bucket that is full stays full: what it would hold
 * beyond that, its clients could be months in paying off.
 *
 * @throws SluiceError `INVALID_POLICY` for a window with a lease: its units would be admitted while refusals count
 */
export function countingRefusals(where: string, resolution: Resolution): Resolution {
  const { kernel, id, carriedId, params, lease } = resolution
  const { countRefusals } = CELL_KINDS[kernel]
  if (!countRefusals) return resolution
  if (lease) {
    throw new SluiceError('INVALID_POLICY', `${where}: lease: expected none on windows beside onDeny: "charge"`)
  }
  // Another limit: without refusals counters hold no more than the limit, and as many bytes as that needs.
  return { ...resolution, id: `${id}.refusals`, carriedId: `${carriedId}.refusals`, params: countRefusals(params) }
}
