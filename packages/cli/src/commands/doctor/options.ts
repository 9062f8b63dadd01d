import type { Target } from '../../redis/target.js'

export interface DoctorOptions {
  readonly target: Target
  /** What keys of the store start with. */
  readonly prefix: string
  /** Longest time for everything together, in ms. */
  readonly timeoutMs: number
  /** `timeout` of the store. */
  readonly storeTimeoutMs: number
  /** How many round trips are measured, for each server. */
  readonly pings: number
  /** Most calls of SCAN, for each server; 0 looks at no keys. */
  readonly scanCalls: number
  /** How many keys are measured, for each server. */
  readonly sample: number
  /** Of Sentinel, whose master is looked at; undefined where it watches one alone. */
  readonly masterName: string | undefined
}
