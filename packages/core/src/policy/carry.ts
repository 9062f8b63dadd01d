import type { Limit, Resolution } from './limits/limit.js'

/**
 * Above this limit counters of segments take more room: it is the largest number in 4 bytes with a sign, as in the memory
 * store.
 */
const LARGEST_NARROW = 2 ** 31 - 1

/**
 * A limit whose count outlasts changes of its amounts: its id names what its state depends on, and no amount. Plans of several
 * versions of it, in any process, therefore share one state, and nothing is moved when the version changes.
 */
export function carriedForm(resolution: Resolution, { carry = '', unit }: Pick<Limit, 'carry' | 'unit'>): Resolution {
  const { kind, carriedId, params } = resolution
  const isLarge = kind.kernel === 'segments' && (params[0] as number) > LARGEST_NARROW
  const id = `${carriedId}${isLarge ? '.large' : ''}${ofUnit(unit)}${carry}`
  return { ...resolution, id, params: kind.widen?.(params) ?? params }
}

/** Requests, bytes received and bytes sent never share a count, even under equal limits. Other units are in every id. */
function ofUnit(unit: Limit['unit']): string {
  if (unit === 'content-bytes') return '.bytes'
  return unit === 'response-bytes' ? '.response-bytes' : ''
}
