import type { Histogram } from '../../store/health.js'
import { REFUND, type StoreRequest, type StoreResult } from '../../store/store.js'
import { probeKey } from '../health/probing.js'
import type { Pending } from './batch.js'
import { BatchRuns, type BatchRunsOptions } from './batch-runs.js'
import type { Outbox } from './outbox.js'

export interface BatchesOptions extends BatchRunsOptions {
  /** Most decisions in one script. */
  readonly batch: number
  /** What sends decisions at the end of a turn of the event loop. */
  readonly outbox: Outbox
}

/**
 * Collects the decisions of one turn of the event loop, which are sent as one script: in a cluster one for each master, or where
 * that does not support it, for each slot that is asked for.
 */
export class Batches {
  readonly #options: BatchesOptions
  readonly #runs: BatchRuns
  /** What waits for the end of this turn, by master, or by slot where that is not known (all in one where there are no slots). */
  #waiting = new Map<string | number, Pending[]>()

  constructor(options: BatchesOptions) {
    this.#options = options
    this.#runs = new BatchRuns(options)
  }

  /** `apart`: for keys that are on one master as far as is known, of what does not look for waiters. */
  decide(request: StoreRequest, slot = 0, apart?: () => Promise<StoreResult>): Promise<StoreResult> {
    return new Promise((resolve, reject) => {
      const { connection, crossSlots, waiters, outbox, batch } = this.#options
      const pending = { request, slot, resolve, reject, apart }
      const looks = !apart && waiters.areLookedFor(request)
      const at = looks ? -1 - slot : (crossSlots && connection.nodeOf(slot)) || slot
      if (this.#waiting.size === 0) outbox.add(this.#sendWaiting)
      const entries = this.#waiting.get(at)
      if (!entries) this.#waiting.set(at, [pending])
      else if (entries.length < batch) entries.push(pending)
      else {
        // Full: it goes now, and this one opens the next.
        this.#waiting.set(at, [pending])
        outbox.sendFirst()
        this.#dispatch(entries, at)
      }
    })
  }

  /** How many decisions wait for a reply. */
  get pending(): number {
    return [...this.#waiting.values()].flat().length + this.#runs.inFlight.decisions
  }

  /** Decisions per batch. */
  get sizes(): Histogram {
    return this.#runs.inFlight.sizes
  }

  /** Resolves when all that was asked has been answered or given up. */
  close(): Promise<void> {
    this.#options.outbox.flush()
    return this.#runs.inFlight.over()
  }

  readonly #sendWaiting = (): void => {
    const waiting = this.#waiting
    this.#waiting = new Map()
    for (const [at, entries] of waiting) this.#dispatch(entries, at)
  }

  #dispatch(entries: readonly Pending[], at: string | number): void {
    const { crossSlots, prefix, waiters } = this.#options
    const { slot } = entries[0] as Pending
    const isOnSlot = () => entries.every((pending) => pending.slot === slot && !pending.apart)
    if ((at as number) < 0) {
      for (const { request } of entries) waiters.noteAsking(request)
      this.#runs.send(entries, { slot }, performance.now(), true)
    } else if (typeof at === 'number' || isOnSlot()) this.#runs.send(entries, { slot })
    else if (crossSlots?.isSupported(at)) this.#sendToNode(entries, at)
    else {
      crossSlots?.tryOut(at, probeKeys(prefix, entries))
      this.#runs.sendBySlot(entries)
    }
  }

  /** Refunds and releases go by slot: done in part it could not be undone. So does what is asked of the same slot, to stay in order. */
  #sendToNode(entries: readonly Pending[], node: string): void {
    const bySlot = new Set(entries.filter(({ request }) => request.op >= REFUND).map(({ slot }) => slot))
    const together = entries.filter(({ slot }) => !bySlot.has(slot))
    const [first] = together
    if (first) this.#runs.send(together, { slot: first.slot, node })
    this.#runs.sendBySlot(entries.filter(({ slot }) => bySlot.has(slot)))
  }
}

/** A key on each of some of the slots of these decisions. */
function probeKeys(prefix: string, entries: readonly Pending[]): string[] {
  const bySlot = new Map(entries.map(({ request, slot }) => [slot, request.identities[0]]))
  return [...bySlot.values()].slice(0, 4).map((identity) => probeKey(prefix, identity))
}
