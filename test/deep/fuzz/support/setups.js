// Constants of the fuzzed servers and their test.

export const PERMITS = 8
export const MOST_BYTES = 1000
export const ALL_BYTES = 1_000_000

/** Whether a correct client may receive an error, by name of the setup. */
export const SETUPS = {
  ...{ reject: false, queue: false, delay: false, tarpit: false, throttle: false, degrade: false, shadow: false },
  ...{ report: false, share: false, counted: false, slow: false, failing: true },
}
