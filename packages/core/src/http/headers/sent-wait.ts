import type { Plan } from '../../store/store.js'
import { arePermits } from '../../store/units.js'
import { DECISION, PARTS, type Verdict } from '../../verdict/verdict.js'
import { binding } from './writer.js'

/** The share of the last permit in the average. */
const LAST = 1 / 8

/** How long permits of each policy were held in this process: an average in ms, of which older permits are an ever smaller part. */
const heldMs = new WeakMap<Plan, number>()

/** Notes that a permit of this verdict was released after `ms`. */
export function noteHeld(verdict: Verdict, ms: number): void {
  const { plan } = verdict[DECISION].request
  const average = heldMs.get(plan)
  heldMs.set(plan, average === undefined ? ms : average + (ms - average) * LAST)
}

/**
 * The wait in ms that clients are sent with a refusal; undefined if no wait helps. It is the verdict's own, but for permits:
 * no clock shows when a handler is done, and `ttl`, after which a permit is free at the latest, is mostly far longer than
 * permits are held.
 */
export function sentWaitMs(verdict: Verdict): number | undefined {
  const { retryAfterMs, limits } = verdict
  const bound = binding(verdict)
  if (retryAfterMs === undefined || !bound || !arePermits(bound.unit)) return retryAfterMs
  const part = verdict[PARTS].find(({ limits }) => limits.some(({ name, allowed }) => !allowed && name === bound.name))
  const average = part && heldMs.get(part[DECISION].request.plan)
  if (average === undefined) return retryAfterMs
  const others = limits.filter(({ unit, allowed }) => !allowed && !arePermits(unit))
  return Math.min(retryAfterMs, Math.max(1, Math.ceil(average), ...others.map((limit) => limit.retryAfterMs as number)))
}
