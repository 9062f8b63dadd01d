// What the fuzzed servers and the test that fuzzes them both know.

export const PERMITS = 8
export const MOST_BYTES = 1000
export const ALL_BYTES = 1_000_000

/** By name, whether a client that does nothing wrong may get an error. */
export const SETUPS = {
  ...{ reject: false, queue: false, delay: false, tarpit: false, throttle: false, degrade: false, shadow: false },
  ...{ report: false, share: false, counted: false, slow: false, failing: true },
}
