import type { Connection } from '../clients/connection.js'
import { probeKey } from '../health/probing.js'
import { RUN, run } from '../scripts/run.js'
import { crossSlotsScript } from '../scripts/scripts.generated.js'

/**
 * Number of consecutive failures, or scripts without any of their keys, after which a tested master is not used for a
 * while.
 */
const MAX_FAILURES = 3
/** How long a server that refuses undeclared keys is not tested again. */
const REFUSED_MS = 60_000
/** How long a master without the keys is not tested again: the client's table of slots was out of date. */
const MOVED_MS = 500

/** Replies of `cross-slots.lua`. */
const READ = 1
const NOT_HERE = 0

interface Master {
  isSupported: boolean
  /** Until when it is not tested again, by the performance clock. */
  until: number
  failures: number
}

/**
 * Knows which masters of a cluster decide keys of several slots in one script: Redis 7.0 and later, unless a proxy in
 * between requires declared keys. Masters are tested by a script that only reads, so that no decision is lost.
 */
export class CrossSlots {
  readonly #connection: Connection
  readonly #prefix: string
  readonly #timeoutMs: number
  readonly #masters = new Map<string, Master>()

  constructor(connection: Connection, prefix: string, timeoutMs: number) {
    this.#connection = connection
    this.#prefix = prefix
    this.#timeoutMs = timeoutMs
  }

  isSupported(node: string): boolean {
    return this.#masters.get(node)?.isSupported === true && this.#connection.isConnectedTo?.(node) === true
  }

  /** The master of a slot, if it accepts scripts with undeclared keys. An unknown master is tested. */
  nodeFor(slot: number, identity: string): string | undefined {
    const node = this.#connection.nodeOf(slot)
    if (this.isSupported(node)) return node
    this.tryOut(node, [probeKey(this.#prefix, identity)])
    return undefined
  }

  /** Whether keys of these slots can be decided together, by one script on one master. Not for refunds and releases. */
  areTogether(slots: readonly number[]): boolean {
    const node = this.#connection.nodeOf(slots[0] as number)
    return this.isSupported(node) && slots.every((slot) => this.#connection.nodeOf(slot) === node)
  }

  /** Tests a master that was not tested yet, with keys of slots that it should have. */
  tryOut(node: string, keys: readonly string[]): void {
    const known = this.#masters.get(node)
    if (known && (known.isSupported || performance.now() < known.until)) return
    if (!this.#connection.isConnectedTo?.(node)) return
    const master = { isSupported: false, until: performance.now() + this.#timeoutMs, failures: known?.failures ?? 0 }
    this.#masters.set(node, master)
    run(this.#connection, this.#timeoutMs, crossSlotsScript, () => ({ keys: [], args: [...keys] }), {
      ...RUN,
      node,
    }).then(
      (reply) => {
        if (reply === READ) master.isSupported = true
        else this.#giveUp(master, reply === NOT_HERE ? MOVED_MS : REFUSED_MS)
      },
      () => this.#noteFailure(master),
    )
  }

  /**
   * Notes the outcome of a script with undeclared keys. It was of use if it succeeded and found any of its keys on that
   * master.
   */
  note(node: string, wasOfUse: boolean): void {
    const master = this.#masters.get(node)
    if (!master) return
    if (wasOfUse) master.failures = 0
    else this.#noteFailure(master)
  }

  #noteFailure(master: Master): void {
    master.failures++
    const isRefused = master.failures >= MAX_FAILURES
    if (isRefused) master.failures = 0
    this.#giveUp(master, isRefused ? REFUSED_MS : 0)
  }

  #giveUp(master: Master, forMs: number): void {
    master.isSupported = false
    master.until = performance.now() + forMs
  }
}
