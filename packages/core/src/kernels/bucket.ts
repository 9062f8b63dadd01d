/**
 * Leaky bucket as a meter, in exact integers: GCRA (ITU-T I.371), the token bucket and both leaky
 * buckets are this one kernel under other names.
 *
 * State: `debt` (unit·ms) as of `at` (ms). One unit of cost adds `windowMs`, each ms pays off `limit`.
 * Invariant: 0 <= debt <= capacity * windowMs < 2^53, so no step below can round.
 *
 * `stepMs` is how often the bucket drains: 1 drains greedily, `windowMs` refills at clock multiples.
 */

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
  if (excess <= 0) return 0
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

/** Where the count of what was given back begins anew: from here on it could round. */
const MOST_GIVEN = Number.MAX_SAFE_INTEGER

/**
 * The debt after giving back `cost` units of a charge that left the debt `receipt` at `chargedAt`, when `before` was
 * counted as given back; and what is counted now: `given`, of charges from the instant `from` on.
 *
 * Only what is sure to be owed is given back: the debt is never less than if what was given back had never been charged.
 * Why: see all that was given back so far as never charged. Without this charge, too, the debt would be less by that
 * charge, but by no more than the least it has been since: below 0 it does not go. That least is not known. But it is
 * no less than what time leaves of the charge alone; nor than what time leaves of the receipt, less all that was given
 * back since: time paid off no more, and no more of the receipt can have been for what was given back.
 *
 * Where nothing came after the charge, it is as if it had never been, and is not counted: nobody found it in the bucket.
 */
export function refund(
  debt: number,
  given: number,
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
): { debt: number; given: number; from: number } {
  // Of what was given back since a charge that was before the count began, there may have been all there can be.
  const since = chargedAt < from ? capacity * windowMs : given - before
  const own = cost * windowMs
  const paidFrom = Math.min(chargedAt, at)
  const left = drain(receipt, paidFrom, at, limit, stepMs)
  const owed = Math.min(debt, own, Math.max(left - Math.max(0, since), drain(own, paidFrom, at, limit, stepMs)))
  if (owed === 0 || (since === 0 && debt === left)) return { debt: debt - owed, given, from }
  if (given + owed < MOST_GIVEN) return { debt: debt - owed, given: given + owed, from }
  return { debt: debt - owed, given: 0, from: at + 1 }
}
