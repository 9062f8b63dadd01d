/**
 * The instant a decision is made at, given the instant its state was written at.
 *
 * A clock that stepped back must not refund, so time stands still until it has caught up. A stored
 * instant further ahead than `horizonMs` is wrong (no client is locked out for longer than a window) and is
 * read as now. Where `isAhead`, the store writes the state again, as of `now`.
 */
export function instant(at: number, now: number, horizonMs: number): number {
  return at > now && at <= now + horizonMs ? at : now
}

export function isAhead(at: number, now: number, horizonMs: number): boolean {
  return at > now + horizonMs
}
