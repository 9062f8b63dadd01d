import { atLeastNone, type ReadReport } from './reply.js'

/**
 * Leaky bucket as a meter, in exact integers: GCRA (ITU-T I.371), the token bucket and both leaky
 * buckets are this one kernel under other names.
 *
 * State: `debt` (unit·ms) as of `at` (ms). One unit of cost adds `windowMs`, each ms pays off `limit`.
 * Invariant: 0 <= debt <= capacity * windowMs < 2^53, so no step below can round.
 *
 * `stepMs` is how often the bucket drains: 1 drains greedily, `windowMs` refills at clock multiples.
 */

/**
 * How much of a debt that was written as `debt` each ms pays off. Mostly `limit`. A debt beyond the capacity was charged by a
 * larger limit on the same state. So much is paid off within a window that a unit has room: at the pace of a smaller limit a
 * client would be refused for many.
 */
export function paceOf(debt: number, limit: number, windowMs: number, capacity: number): number {
  return debt <= capacity * windowMs ? limit : Math.max(limit, Math.ceil(debt / windowMs) - capacity + 1)
}

/** What is left of `debt` at the instant `at`, having been written at `since`. */
export function drain(debt: number, since: number, at: number, limit: number, stepMs: number): number {
  const elapsed = Math.floor(at / stepMs) * stepMs - Math.floor(since / stepMs) * stepMs
  return Math.max(0, debt - elapsed * limit)
}

/** Milliseconds from `at` until `cost` units have room: 0 now, -1 never. */
export function waitFor(
  debt: number,
  at: number,
  cost: number,
  limit: number,
  windowMs: number,
  capacity: number,
  stepMs: number,
): number {
  if (cost > capacity) return -1
  const excess = debt + cost * windowMs - capacity * windowMs
  // A cost of 0 has room even where the debt exceeds the capacity.
  if (excess <= 0 || cost < Math.min(1, capacity)) return 0
  const steps = Math.ceil(excess / (limit * stepMs))
  return (Math.floor(at / stepMs) + steps) * stepMs - at
}

/** The debt after charging `cost`; a charge that does not fit fills the bucket. */
export function charge(debt: number, cost: number, windowMs: number, capacity: number): number {
  return Math.min(capacity * windowMs, debt + cost * windowMs)
}

/** Whole units that have room. */
export function remaining(debt: number, windowMs: number, capacity: number): number {
  return Math.floor((capacity * windowMs - debt) / windowMs)
}

/** The count of refunds starts again here, before it could round. */
const MAX_REFUNDED = Number.MAX_SAFE_INTEGER

/**
 * The debt after a refund of `cost` units, and the count of refunds: `refunded` (unit·ms) for charges from the instant
 * `from` on. The charge left the debt `receipt` at `chargedAt`; the count was `before` then.
 *
 * Only what is sure to be still owed is refunded: the debt is never less than if the refunded units had never been
 * charged. Why: suppose that all units refunded so far were never charged. Without this charge as well, the debt would
 * be less by the charge, but by no more than the least debt since, as a debt does not go below 0. That least debt is
 * not known, but it is at least what time leaves of the charge alone, and at least what time leaves of the receipt
 * less all refunds since: time paid off no more, and no more of the receipt can have been for refunded units.
 *
 * A refund with no charge in between restores the state before, and is not counted.
 */
export function refund(
  debt: number,
  refunded: number,
  from: number,
  at: number,
  cost: number,
  receipt: number,
  before: number,
  chargedAt: number,
  limit: number,
  windowMs: number,
  capacity: number,
  stepMs: number,
): { debt: number; refunded: number; from: number } {
  // A charge from before the count began: assume that as much was refunded since as the bucket can hold.
  const since = chargedAt < from ? capacity * windowMs : refunded - before
  const own = cost * windowMs
  const paidFrom = Math.min(chargedAt, at)
  const left = drain(receipt, paidFrom, at, limit, stepMs)
  const owed = Math.min(debt, own, Math.max(left - Math.max(0, since), drain(own, paidFrom, at, limit, stepMs)))
  if (owed === 0 || (since === 0 && debt === left)) return { debt: debt - owed, refunded, from }
  if (refunded + owed < MAX_REFUNDED) return { debt: debt - owed, refunded: refunded + owed, from }
  return { debt: debt - owed, refunded: 0, from: at + 1 }
}

export const readReport: ReadReport = (reply, values, params, now, need, later) => {
  const [limit, windowMs, capacity, stepMs] = params as [number, number, number, number]
  let debt = atLeastNone(reply, reply.uint56() - later * windowMs)
  let at = reply.uint48()
  const pace = paceOf(debt, limit, windowMs, capacity)
  if (pace !== limit) {
    const since = at
    at = Math.max(since, now)
    debt = drain(debt, since, at, pace, stepMs)
  }
  if (at < now) throw reply.unreadable('expected no state older than the decision')
  // While the clock catches up with the state, its waits count from the state's instant.
  const wait = (cost: number) => {
    const ms = waitFor(debt, at, cost, pace, windowMs, capacity, stepMs)
    return ms > 0 ? ms + at - now : ms
  }
  const left = Math.max(0, remaining(debt, windowMs, capacity))
  if (need === undefined) values.push(left, 0, wait(capacity), debt)
  else values.push(left, wait(need), wait(capacity), wait(left + 1))
}
