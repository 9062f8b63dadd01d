import type { Quota } from '../quota/quota-types.js'
import type { ToldLimit } from './kernel.js'

/** A service tells one or two. */
const MAX_LIMITS = 8
const LONGEST_NAME = 100

/** The limits of requests in a response that tells what is left, and until when: one of each name. */
export function toldLimits(quota: Quota | undefined): ToldLimit[] {
  const told = new Map<string, ToldLimit>()
  for (const { name: given, unit, limit, remaining, resetAfterMs, isBucket } of quota?.limits ?? []) {
    if (unit !== 'requests' || remaining === undefined || resetAfterMs === undefined) continue
    const name = given.toWellFormed().slice(0, LONGEST_NAME).toWellFormed()
    const rest = { remaining: Math.floor(remaining), resetAfterMs: Math.ceil(resetAfterMs) }
    // How fast a bucket is filled follows from its limit.
    told.set(name, { name, limit: Math.floor(limit ?? 0), ...rest, isBucket: isBucket && limit !== undefined })
    if (told.size === MAX_LIMITS) break
  }
  return [...told.values()]
}
