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

/** Decisions for one destination: a master, or a slot if the master is unknown or waiters are checked. */
interface Waiting {
  readonly entries: Pending[]
  readonly node: string | undefined
  /** Whether they check for waiting requests of other processes. */
  readonly looks: boolean
}

/**
 * Collects the decisions of one turn of the event loop and sends them as one script. In a cluster, there is one script
 * per master, or per slot if the master does not support undeclared keys.
 */
export class Batches {
  readonly #options: BatchesOptions
  readonly #runs: BatchRuns
  /** The decisions that wait for the end of this turn, by the name of their destination. Without a cluster, it is one. */
  #waiting = new Map<string | number, Waiting>()

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
      const node = looks ? undefined : crossSlots && (connection.nodeOf(slot) || undefined)
      const name = looks ? `turns ${slot}` : (node ?? slot)
      if (this.#waiting.size === 0) outbox.add(this.#sendWaiting)
      const waiting = this.#waiting.get(name)
      if (waiting && waiting.entries.length < batch) {
        waiting.entries.push(pending)
        return
      }
      this.#waiting.set(name, { entries: [pending], node, looks })
      if (!waiting) return
      // The batch is full: it is sent now, and this decision opens the next one.
      outbox.sendFirst()
      this.#dispatch(waiting)
    })
  }

  /** Number of decisions that wait for a reply. */
  get pending(): number {
    return [...this.#waiting.values()].flatMap(({ entries }) => entries).length + this.#runs.inFlight.decisions
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
    for (const [, batch] of waiting) this.#dispatch(batch)
  }

  #dispatch({ entries, node, looks }: Waiting): void {
    const { crossSlots, prefix, waiters } = this.#options
    const { slot } = entries[0] as Pending
    const isOnSlot = () => entries.every((pending) => pending.slot === slot && !pending.apart)
    if (looks) {
      for (const { request } of entries) waiters.noteRequest(request)
      this.#runs.send(entries, { slot, node: undefined }, performance.now(), true)
    } else if (node === undefined || isOnSlot()) this.#runs.send(entries, { slot, node: undefined })
    else if (crossSlots?.isSupported(node)) this.#sendToNode(entries, node)
    else {
      crossSlots?.tryOut(node, probeKeys(prefix, entries))
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
