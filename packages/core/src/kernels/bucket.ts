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

/**
 * The debt after giving back `cost` units of a charge that left `receipt` behind it at `chargedAt`.
 * Only what time has not paid off since is given back: the result is the debt as if that charge
 * had never been made, not one unit·ms less.
 */
export function refund(
  debt: number,
  at: number,
  cost: number,
  receipt: number,
  chargedAt: number,
  limit: number,
  windowMs: number,
  stepMs: number,
): number {
  const outstanding = drain(receipt, Math.min(chargedAt, at), at, limit, stepMs)
  return Math.max(0, debt - Math.min(cost * windowMs, outstanding))
}
