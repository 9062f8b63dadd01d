const ORIGIN = performance.timeOrigin

/**
 * Wall-clock time as it was when the process started plus what a monotonic clock has measured since:
 * whole ms that never step back, aligned with UTC so that clock-anchored windows start where users expect.
 */
export function monotonicNow(): number {
  return Math.floor(ORIGIN + performance.now())
}
