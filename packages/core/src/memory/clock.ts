const ORIGIN = performance.timeOrigin

/**
 * Wall-clock time as it was when the process started plus what a monotonic clock has measured since:
 * whole ms that never step back, aligned with UTC so that clock-anchored windows start where users expect.
 */
export function monotonicClock(): () => number {
  // Looked up once: the global is an accessor of Node's, whose call costs each decision some 5 %.
  const clock = performance
  return () => Math.floor(ORIGIN + clock.now())
}
