/** The clock and the timers of waits. */
export interface Timing {
  /** Monotonic, in ms. */
  now(): number
  setTimeout(callback: () => void, ms: number): Timer
  clearTimeout(timer: Timer | undefined): void
  setInterval(callback: () => void, ms: number): Timer
  clearInterval(timer: Timer | undefined): void
}

/** A timer of `Timing`. */
export interface Timer {
  /** Lets the process end before it is due. */
  unref(): this
}

/** Those of this process, for every live request. The globals are read at each call, as tests replace them. */
export const PROCESS_TIMING: Timing = {
  now: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
  setInterval: (callback, ms) => setInterval(callback, ms),
  clearInterval: (timer) => clearInterval(timer as NodeJS.Timeout | undefined),
}
