import type { Histogram } from '../../store/health.js'
import { REFUND, type StoreRequest, type StoreResult } from '../../store/store.js'
import { probeKey } from '../health/probing.js'
import type { Pending } from './batch.js'
import { BatchRuns, type BatchRunsOptions } from './batch-runs.js'
import type { Outbox } from './outbox.js'

export interface BatchesOptions extends BatchRunsOptions {
  /** Maximum decisions in one script. */
  readonly batch: number
  /** Sends decisions at the end of a turn of the event loop. */
  readonly outbox: Outbox
}

/**
 * Collects the decisions of one turn of the event loop and sends them as one script. In a cluster, there is one script
 * per master, or per slot if the master does not support undeclared keys.
 */
export class Batches {
  readonly #options: BatchesOptions
  readonly #runs: BatchRuns
  /**
   * Decisions that wait for the end of this turn, by master, or by slot if the master is unknown. Without a cluster,
   * there is one entry.
   */
  #waiting = new Map<string | number, Pending[]>()

  constructor(options: BatchesOptions) {
    this.#options = options
    this.#runs = new BatchRuns(options)
  }

  /** `apart`: given if the keys are known to be on one master and the decision does not check for waiters. */
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
        // The batch is full: it is sent now, and this decision opens the next one.
        this.#waiting.set(at, [pending])
        outbox.sendFirst()
        this.#dispatch(entries, at)
      }
    })
  }

  /** Number of decisions that wait for a reply. */
  get pending(): number {
    return [...this.#waiting.values()].flat().length + this.#runs.inFlight.decisions
  }

  /** Decisions per batch. */
  get sizes(): Histogram {
    return this.#runs.inFlight.sizes
  }

  /** Resolves when every decision has a result or has failed. */
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
      for (const { request } of entries) waiters.noteRequest(request)
      this.#runs.send(entries, { slot, node: undefined }, performance.now(), true)
    } else if (typeof at === 'number' || isOnSlot()) this.#runs.send(entries, { slot, node: undefined })
    else if (crossSlots?.isSupported(at)) this.#sendToNode(entries, at)
    else {
      crossSlots?.tryOut(at, probeKeys(prefix, entries))
      this.#runs.sendBySlot(entries)
    }
  }

  /**
   * Refunds and releases are sent by slot, as a partial refund could not be undone, and charges that are kept with the record of each. Other decisions on the same slots
   * are sent by slot too, to preserve order.
   */
  #sendToNode(entries: readonly Pending[], node: string): void {
    if (!entries.some(({ request }) => isBySlot(request))) {
      this.#runs.send(entries, { slot: (entries[0] as Pending).slot, node })
      return
    }
    const bySlot = new Set(entries.filter(({ request }) => isBySlot(request)).map(({ slot }) => slot))
    const together = entries.filter(({ slot }) => !bySlot.has(slot))
    const [first] = together
    if (first) this.#runs.send(together, { slot: first.slot, node })
    this.#runs.sendBySlot(entries.filter(({ slot }) => bySlot.has(slot)))
  }
}

/** One probe key for each of up to four slots of these decisions. */
function probeKeys(prefix: string, entries: readonly Pending[]): string[] {
  const bySlot = new Map(entries.map(({ request, slot }) => [slot, request.identities[0]]))
  return [...bySlot.values()].slice(0, 4).map((identity) => probeKey(prefix, identity))
}

function isBySlot({ op, keep }: StoreRequest): boolean {
  return op >= REFUND || keep !== undefined
}
