import type { StoreRequest } from '../store/store.js'
import { watchers } from '../util/listeners.js'
import type { Verdict } from '../verdict/verdict.js'
import type { WaitedEvent } from './events.js'

/** Counts what limiters do, for exporters of metrics. Called directly: an event for each decision would cost several times as much. */
export interface DecisionCounter {
  /** Whether the next decision is to be measured. */
  measuresNext(): boolean
  decided(verdict: Verdict): void
  /** Permits of a charge have been renewed, released or refunded. */
  changedPermits(request: StoreRequest): void
  /** A request begins to wait. Returns what to call when it waits no more. */
  waits(policy: string): (outcome: WaitedEvent['outcome'], waitedMs: number) => void
}

let counter: DecisionCounter | undefined

/** Undefined while counting is off. */
export function activeCounter(): DecisionCounter | undefined {
  return counter
}

/** Begins to count, or ends it. */
export function countBy(next: DecisionCounter | undefined): void {
  if (!counter && next) watchers.total++
  if (counter && !next) watchers.total--
  counter = next
  watchers.isCounting = next !== undefined
}
