import type { ReadablePlan } from '../policy/plan.js'
import { opensByRequest } from '../store/algorithms.js'
import type { Cell } from '../store/store.js'

/**
 * Whether the uses of a limit bound what a lower one would have refused: a capacity of `lower` units, at the same refill and window.
 *
 * Claim: the same requests, decided with the lower limit, meet at most R refusals by it, where R counts those that needed more than
 * `lower`, and those that anything else than this limit refused.
 *
 * Proof, for one identity and costs of 1. Call a unit more if only the lower limit charged it, and less if only the present one did. A
 * refusal by the lower limit that R does not count is a request that the present one admitted, with fewer units in use than with the
 * lower one. It makes a unit less. Match this with an older unit more that still counts and has no match: there is one, as otherwise
 * the units less would weigh as much as the units more. A unit is more only where the present limits refused the request, which R
 * counts, as a refusal by this limit needed more than all of it. A refused request thus stands for one refusal at most: its own, or
 * the one that is matched with its unit.
 *
 * This needs units that weigh no less than older ones, at each instant: windows by the clock, segments and logs. In buckets, the
 * difference of the two debts takes the place of matches: units more raise it by one, nothing else raises it above 0, and a refusal
 * that R does not count needs a difference above 0, and lowers it by one. A window that begins with a request may begin earlier with a lower limit, but only where something
 * else refused its first request. Units that are refunded, settled, leased or exchanged, permits, turns and reserves have no such order.
 */
export function boundsLower({ cells, cellOf, resolved, relaxed, reserves, ban }: ReadablePlan, i: number): boolean {
  const cell = cells[cellOf[i] as number] as Cell
  const isAlone = resolved.length === 1 && !ban
  return (
    cell.kernel !== 'concurrency' &&
    !cell.lease &&
    !relaxed &&
    !reserves &&
    resolved.every(({ queue, spreadMs }) => !queue && spreadMs === undefined) &&
    (isAlone || !opensByRequest(cell))
  )
}
