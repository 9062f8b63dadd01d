import type { Limit } from '@sluice/core'
import type { LimitData } from '../document/document.js'

/** What a limit says of how much it admits. Of any other field, another value may admit more. */
const AMOUNTS = ['name', 'limit', 'refill', 'leak', 'capacity', 'burst', 'window', 'every']

/** A limit, and what it was made of. */
interface MadeLimit {
  readonly data: LimitData
  readonly limit: Limit
}

/** Whether a limit that overrides another one may admit more than that: unless each of its amounts is as small, it may. */
export function mayAdmitMore(change: LimitData, before: MadeLimit, after: MadeLimit): boolean {
  const isOther = ([field, value]: [string, unknown]) => !AMOUNTS.includes(field) && value !== before.data[field]
  if (Object.entries(change).some(isOther)) return true
  const isSlower = Number(after.limit.limit) <= Number(before.limit.limit)
  const isAsLong = after.limit.window === before.limit.window || after.limit.window >= before.limit.window
  return !(isSlower && isAsLong && atOnce(after) <= atOnce(before))
}

/** Units that are admitted in a burst. */
function atOnce({ data, limit }: MadeLimit): number {
  return Number(data.burst ?? data.capacity ?? limit.limit)
}
