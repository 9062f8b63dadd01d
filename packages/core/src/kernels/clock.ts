/**
 * The instant of a decision, given the instant when its state was written.
 *
 * A clock that stepped back must not refund, so time stands still until the clock has caught up. A stored instant more
 * than `horizonMs` ahead is wrong and is read as now, so that no client is locked out for longer than a window. If
 * `isAhead`, the store rewrites the state as of `now`.
 */
export function instant(at: number, now: number, horizonMs: number): number {
  return at > now && at <= now + horizonMs ? at : now
}

export function isAhead(at: number, now: number, horizonMs: number): boolean {
  return at > now + horizonMs
}
