import type { Target } from '../../redis/target.js'

export interface DoctorOptions {
  readonly target: Target
  /** The prefix of the store's keys. */
  readonly prefix: string
  /** Longest time for everything together, in ms. */
  readonly timeoutMs: number
  /** `timeout` of the store. */
  readonly storeTimeoutMs: number
  /** Round trips that are measured, for each server. */
  readonly pings: number
  /** Most calls of SCAN, for each server; 0 skips keys. */
  readonly scanCalls: number
  /** Keys that are measured, for each server. */
  readonly sample: number
  /** The name of the master to look at, for Sentinel. Undefined if it watches one alone. */
  readonly masterName: string | undefined
}
