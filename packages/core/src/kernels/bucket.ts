import { atLeastNone, type ReadReport } from './reply.js'

/**
 * Leaky bucket as a meter, in exact integers. GCRA (ITU-T I.371), the token bucket and both leaky buckets are this one
 * kernel under other names.
 *
 * State: `debt` (unit·ms) as of `at` (ms). One unit of cost adds `windowMs`, each ms pays off `limit`.
 * Charges keep 0 <= debt <= capacity * windowMs, and settlements keep debt <= `maxDebt`. A larger limit on the same state may owe
 * more: see `paceOf`. 0 <= debt < 2^53 always, so no step below can round.
 *
 * `stepMs` is how often the bucket drains: 1 drains greedily, `windowMs` refills at clock multiples.
 */

/** The largest debt, in unit·ms: a full bucket and as much again, as far as numbers are exact. */
export function maxDebt(windowMs: number, capacity: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, 2 * capacity * windowMs)
}

/**
 * Units·ms of a stored `debt` that each ms pays off: `limit`, except where a larger limit on the same state owed more than two
 * windows pay off. That is paid off in two windows: at the pace of a smaller limit, a client would be refused for many. It is
 * never faster than by the larger limit, whose debt is at most two of its windows where limits of other capacities share a state.
 */
export function paceOf(debt: number, limit: number, windowMs: number, capacity: number): number {
  return debt <= 2 * Math.max(limit, capacity) * windowMs ? limit : Math.ceil(debt / (2 * windowMs))
}

/** The debt that drains at `pace`: rounded up to one that is gone after two windows, so that a smaller debt is gone no later. */
export function atPace(debt: number, pace: number, limit: number, windowMs: number): number {
  return pace === limit ? debt : pace * 2 * windowMs
}

/** The part of a `debt`, written at `since`, that is left at the instant `at`. */
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
  const excess = debt - (capacity - cost) * windowMs
  // A cost of 0 has room even if the debt exceeds the capacity.
  if (excess <= 0 || cost < Math.min(1, capacity)) return 0
  const steps = Math.ceil(excess / (limit * stepMs))
  return (Math.floor(at / stepMs) + steps) * stepMs - at
}

/** The debt after charging `cost`; a charge that does not fit fills the bucket. */
export function charge(debt: number, cost: number, windowMs: number, capacity: number): number {
  return Math.min(capacity * windowMs, debt + cost * windowMs)
}

/** The debt after charging `cost` whatever room there is. The rest of a `cost` beyond the largest debt is forgiven. */
export function debit(debt: number, cost: number, windowMs: number, capacity: number): number {
  return Math.min(maxDebt(windowMs, capacity), debt + cost * windowMs)
}

/** Whole units that have room. */
export function remaining(debt: number, windowMs: number, capacity: number): number {
  return Math.floor((capacity * windowMs - debt) / windowMs)
}

/** The count of refunds restarts here, before it could round. */
const MAX_REFUNDED = Number.MAX_SAFE_INTEGER

/** Added to the instant from which charges are counted, where a part of a settlement was forgiven just before it. */
const FORGIVEN = 2 ** 47

/** The instant from which charges are refunded, after a part of a settlement was forgiven at the instant `at`. */
export function fromForgiven(at: number): number {
  return FORGIVEN + at + 1
}

/**
 * A state's debt after a refund of `cost` units, and the count of refunds: `refunded` (unit·ms) for charges from the
 * instant `from` on. The charge left the debt `receipt` at `chargedAt`, when the count was `before`.
 *
 * Only units that are certainly still owed at the instant `at` are refunded. The debt is never less than if the refunded
 * units had never been charged.
 *
 * Proof: suppose that no unit refunded so far had been charged. Without this charge too, the debt would be lower by the
 * charge, but by no more than the least debt since, as a debt is never below 0. The least debt is unknown, but it has
 * two lower bounds. One is the part of this charge alone that time has not paid off. The other is the part of the
 * receipt that time has not paid off, minus all refunds since: no more of the receipt can belong to refunded units.
 * If a part of a settlement was forgiven since, that part would be owed without this charge. So nothing is refunded of charges
 * from before it.
 *
 * A refund with no charge in between restores the state before, and is not counted.
 *
 * The refund is of the debt as it was `written`, of which `debt` is left, so the state keeps its instant. Other limits on the
 * same state drain at another pace from that instant.
 */
export function refund(
  written: number,
  debt: number,
  refunded: number,
  from: number,
  at: number,
  cost: number,
  receipt: number,
  before: number,
  chargedAt: number,
  pace: number,
  windowMs: number,
  capacity: number,
  stepMs: number,
): { written: number; refunded: number; from: number } {
  const forgiven = from < FORGIVEN ? 0 : FORGIVEN
  const isCounted = chargedAt >= from - forgiven
  // The charge is older than the count. Assume that refunds since then equal the bucket's capacity.
  const others = isCounted ? Math.max(0, refunded - before) : capacity * windowMs
  const charged = cost * windowMs
  const paidFrom = Math.min(chargedAt, at)
  const left = drain(receipt, paidFrom, at, pace, stepMs)
  const owed = Math.min(written, debt, charged, Math.max(left - others, drain(charged, paidFrom, at, pace, stepMs)))
  if (owed === 0 || (forgiven > 0 && !isCounted)) return { written, refunded, from }
  if (others === 0 && debt === left) return { written: Math.max(0, written - charged), refunded, from }
  if (refunded + owed < MAX_REFUNDED) return { written: written - owed, refunded: refunded + owed, from }
  return { written: written - owed, refunded: 0, from: forgiven + at + 1 }
}

export const readReport: ReadReport = (reply, values, params, now, need, later) => {
  const [limit, windowMs, capacity, stepMs] = params as [number, number, number, number]
  let debt = atLeastNone(reply, reply.uint56() - later * windowMs)
  let at = reply.uint48()
  const pace = paceOf(debt, limit, windowMs, capacity)
  if (pace !== limit) {
    const since = at
    at = Math.max(since, now)
    debt = drain(atPace(debt, pace, limit, windowMs), since, at, pace, stepMs)
  }
  if (at < now) throw reply.unreadable('expected no state older than the decision')
  const left = Math.max(0, remaining(debt, windowMs, capacity))
  // While the clock catches up with the state, its waits count from the state's instant.
  const aheadMs = at - now
  const resetMs = fromNow(waitFor(debt, at, capacity, pace, windowMs, capacity, stepMs), aheadMs)
  if (need === undefined) values.push(left, 0, resetMs, debt)
  else {
    const retryMs = fromNow(waitFor(debt, at, need, pace, windowMs, capacity, stepMs), aheadMs)
    const moreMs = fromNow(waitFor(debt, at, left + 1, pace, windowMs, capacity, stepMs), aheadMs)
    values.push(left, retryMs, resetMs, moreMs)
  }
}

/** A wait that counts from an instant `aheadMs` from now. */
function fromNow(waitMs: number, aheadMs: number): number {
  return waitMs > 0 ? waitMs + aheadMs : waitMs
}
