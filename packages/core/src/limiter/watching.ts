import type { HttpContext } from '../request/context.js'
import type { StoreRequest } from '../store/store.js'
import { watchers } from '../util/listeners.js'
import type { Verdict } from '../verdict/verdict.js'
import type { WaitedEvent } from './events.js'

/** Counts the work of limiters, for exporters of metrics. Called directly, as events would cost several times as much. */
export interface DecisionCounter {
  /** Whether the next decision is to be measured. */
  measuresNext(): boolean
  decided(verdict: Verdict): void
  /** Takes a change of a charge: its permits have been renewed or released, or units refunded. */
  changedCharge(request: StoreRequest): void
  /** Takes the start of a request's wait. Returns the function to call at its end. */
  waits(policy: string): (outcome: WaitedEvent['outcome'], waitedMs: number) => void
}

let counter: DecisionCounter | undefined

/** The counter; undefined while counting is off. */
export function activeCounter(): DecisionCounter | undefined {
  return counter
}

/** Starts counting, or stops it. */
export function countBy(next: DecisionCounter | undefined): void {
  if (!counter && next) watchers.total++
  if (counter && !next) watchers.total--
  counter = next
  watchers.isCounting = next !== undefined
}

/** Takes final verdicts with their requests, for recordings. Called directly, too. */
export interface DecisionRecorder {
  /** `isRefused`: whether the request does not proceed. `context`: undefined without HTTP. */
  decided(verdict: Verdict, isRefused: boolean, context: HttpContext | undefined): void
}

let recorder: DecisionRecorder | undefined

/** The recorder; undefined while nothing is recorded. */
export function activeRecorder(): DecisionRecorder | undefined {
  return recorder
}

/** Starts recording, or stops it. */
export function recordBy(next: DecisionRecorder | undefined): void {
  if (!recorder && next) watchers.total++
  if (recorder && !next) watchers.total--
  recorder = next
}
