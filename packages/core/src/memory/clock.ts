// Read once: the global is an accessor of Node's, whose call would be a tenth of a decision.
const REAL = performance
const ORIGIN = REAL.timeOrigin

/**
 * Wall-clock time at the start of the process, plus the time measured by a monotonic clock since. Whole ms that never step
 * back, aligned with UTC so that clock-anchored windows start where users expect.
 */
function monotonicNow(): number {
  return Math.floor(ORIGIN + REAL.now())
}

/** A clock for one store. It follows fake timers that a test has installed earlier. */
export function monotonicClock(): () => number {
  const clock = performance
  return clock === REAL ? monotonicNow : () => Math.floor(ORIGIN + clock.now())
}
