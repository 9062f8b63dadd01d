import type { DecisionEvent } from '../limiter/events.js'
import type { Identity } from '../store/identity.js'
import { dropOldest } from '../util/drop-oldest.js'
import { plainText } from './key-text.js'

/** Refusals remembered. Beyond that, the oldest are forgotten, and may be written again. */
const MAX_REFUSALS = 10_000
/** For how long refusals by no limit and no block are one, in ms. */
const OTHERWISE_MS = 60_000
/** Longest that a refusal is remembered: a client that is blocked for ever has a line once a day. */
const LONGEST_MS = 86_400_000

/** Knows which refusals are the first of a client in a window. */
export class FirstRefusals {
  /**
   * By policy, limit, outcome and client: until when further refusals need no line, by the performance clock. In the order of
   * writing.
   */
  readonly #until = new Map<string, number>()

  /** The keys of a refusal, and whether it needs a line. Call `written` once that is written. */
  look(event: DecisionEvent): { readonly keys: readonly Identity[]; readonly id: string; readonly isNew: boolean } {
    const keys = keysOf(event)
    const id = [event.policy, event.limit, event.outcome, ...keys.map(plainText)].join('\n')
    const until = this.#until.get(id)
    return { keys, id, isNew: until === undefined || until <= performance.now() }
  }

  written(id: string, event: DecisionEvent): void {
    // Moves it to the end of the order.
    this.#until.delete(id)
    this.#until.set(id, performance.now() + windowOf(event))
    dropOldest(this.#until, MAX_REFUSALS)
  }
}

/** The keys that the refusing limit is charged on. For a block all keys, as the blocked one is not known. */
function keysOf(event: DecisionEvent): readonly Identity[] {
  const reported = refusing(event)
  return reported ? [reported.key] : event.verdict.keys
}

function windowOf(event: DecisionEvent): number {
  const { outcome, verdict } = event
  const isBlock = outcome === 'blocked' || outcome === 'banned'
  const ms = isBlock ? verdict.retryAfterMs : (refusing(event)?.windowMs ?? OTHERWISE_MS)
  return Math.min(ms ?? LONGEST_MS, LONGEST_MS)
}

/** The limit that refuses. */
function refusing({ limit, verdict }: DecisionEvent) {
  return limit === undefined ? undefined : verdict.limits.find(({ name }) => name === limit)
}
