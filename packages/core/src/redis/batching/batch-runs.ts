import { REFUND, type StoreRequest, type StoreResult } from '../../store/store.js'
import { SluiceError } from '../../util/errors.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { groupBy } from '../../util/group-by.js'
import { probeKey } from '../health/probing.js'
import { ResultReader } from '../scripts/decode.js'
import { unreadable } from '../scripts/reply-reader.js'
import { isTryAgain, type Pulse, run } from '../scripts/run.js'
import { decideOnMovingSlot } from '../slots/moving-slot.js'
import type { Batch, Destination, Pending } from './batch.js'
import { type BatchScript, BatchScripts, type BatchScriptsOptions } from './batch-scripts.js'
import { InFlight, MAX_UNSENT } from './in-flight.js'

export interface BatchRunsOptions extends BatchScriptsOptions {
  readonly observers: readonly ResultObserver[]
}

export interface ResultObserver {
  /**
   * Called with every result from Redis, in the order of decisions, before its caller receives it. `sentAt` is by the
   * performance clock.
   */
  onResult(request: StoreRequest, result: StoreResult, slot: number, sentAt: number): void
}

/**
 * Sends each batch as one script and resolves its decisions. This class alone sends decisions again, within the timeout
 * of the first try, and only those of which a reply says that nothing was charged. A lost reply is no such reply.
 *
 * | the reply says | sent again | for each batch |
 * |---|---|---|
 * | a request waits for the cell: `mayNeedRecords` | the batch, with records of waiters | once |
 * | an identity may be blocked: `mayBeEmpty` | the batch, with block keys | once, after the former |
 * | refused, by a script that cannot strike: `strikesApart` | these decisions, to a script that can | once |
 * | elsewhere: its keys are on another node | these decisions, by slot | once |
 * | TRYAGAIN: the slot is moving | each decision by itself, see `decideOnMovingSlot` | once |
 *
 * Beneath, `run` sends a script as source after NOSCRIPT, and clients of clusters follow redirections. For a second after
 * a block or strike was seen, later batches do without the first try.
 *
 * Invariants in every order of commands and replies of several stores (`test/deep/interleavings/blocks.test.ts`):
 * while a block is in force in Redis, no decision that reaches Redis is admitted. Each decision is charged at most
 * once. This requires a marker that lives as long as any block.
 */
export class BatchRuns {
  readonly #options: BatchRunsOptions
  readonly #scripts: BatchScripts
  readonly inFlight = new InFlight()
  /** The last reply of each server, by address. */
  readonly #pulses = new Map<string, Pulse>()

  constructor(options: BatchRunsOptions) {
    this.#options = options
    this.#scripts = new BatchScripts(options)
  }

  send(entries: readonly Pending[], to: Destination, sentAt = performance.now(), looks = false): void {
    const { slot, node } = to
    const groups = groupBy(entries, ({ request }) => request.plan)
    // Not `...to`: V8 would give every such object a hidden class of its own, at several microseconds each.
    const batch: Batch = { slot, node, entries, groups, sentAt, isSent: false, looks }
    if (this.inFlight.begin(batch)) {
      this.#run(batch, this.#scripts.choose(batch))
      return
    }
    for (const { reject } of entries) reject(TOO_MANY)
    this.inFlight.end(batch)
  }

  sendBySlot(entries: readonly Pending[], sentAt = performance.now()): void {
    for (const { apart, resolve, reject } of entries) apart?.().then(resolve, reject)
    const here = entries.filter(({ apart }) => !apart)
    for (const [slot, pendings] of groupBy(here, (pending) => pending.slot))
      this.send(pendings, { slot, node: undefined }, sentAt)
  }

  #leftMs(sentAt: number): number {
    return Math.max(1, this.#options.timeoutMs - (performance.now() - sentAt))
  }

  async #run(batch: Batch, chosen: BatchScript): Promise<void> {
    const { script, encoded, strikesApart } = chosen
    const { connection, breaker } = this.#options
    const { node, slot, sentAt } = batch
    const pulse = this.#pulseOf(node ?? connection.nodeOf(slot))
    const onSent = () => this.inFlight.sent(batch)
    try {
      const reply = await run(connection, this.#leftMs(sentAt), script, encoded, { node, pulse, onSent })
      const results = new ResultReader(reply)
      const again = this.#scripts.chooseAgain(batch, chosen, results)
      if (again) {
        this.#run(batch, again)
        return
      }
      this.#deliver(batch, results, strikesApart)
    } catch (error) {
      this.#failed(batch, error as Error)
      return
    }
    breaker.succeeded(slot)
    this.inFlight.end(batch)
  }

  #pulseOf(node: string): Pulse {
    return getOrInsert(this.#pulses, node, () => ({ lastReplyAt: 0, sentAt: 0 }))
  }

  #failed(batch: Batch, error: Error): void {
    const { entries, slot, node } = batch
    const { breaker, prefix, crossSlots } = this.#options
    this.inFlight.sent(batch)
    if (node !== undefined) crossSlots?.note(node, false)
    else if (isTryAgain(error)) {
      this.#runEach(batch)
      return
    }
    breaker.failed(slot, error, probeKey(prefix, entries[0]?.request.identities[0]))
    for (const { reject } of entries) reject(error)
    this.inFlight.end(batch)
  }

  /** Nothing was decided: the slot is migrating, and only some of the keys are here. Decides each request by itself. */
  #runEach(batch: Batch): void {
    const { entries, slot, sentAt } = batch
    const { connection, prefix, clock, texts, breaker } = this.#options
    breaker.succeeded(slot)
    const moving = { connection, prefix, clock, textOf: texts.of }
    const decisions = entries.map(async ({ request, resolve, reject }) => {
      try {
        const result = await decideOnMovingSlot(moving, request, () => this.#leftMs(sentAt))
        // The deny cache must not repeat a result combined from several replies.
        this.#show({ ...request, fresh: true }, result, slot, sentAt)
        resolve(result)
      } catch (error) {
        reject(error as Error)
      }
    })
    Promise.all(decisions).then(() => this.inFlight.end(batch))
  }

  #deliver(batch: Batch, results: ResultReader, strikesApart: boolean): void {
    const { groups, node, entries, slot, sentAt } = batch
    const read = this.#read(batch, results)
    const { crossSlots } = this.#options
    const elsewhere: Pending[] = []
    const struck: Pending[] = []
    let i = 0
    for (const group of groups.values()) {
      for (const pending of group) {
        const { request } = pending
        const result = read[i++]
        if (!result) elsewhere.push(pending)
        else if (strikesApart && request.strike !== undefined && !result.allowed && !result.block) struck.push(pending)
        else {
          this.#show(request, result, pending.slot, sentAt)
          pending.resolve(result)
        }
      }
    }
    if (node !== undefined) crossSlots?.note(node, elsewhere.length < entries.length)
    if (struck.length > 0) {
      this.#scripts.sawStrike()
      this.send(struck, { slot, node }, sentAt)
    }
    if (elsewhere.length === 0) return
    if (node !== undefined) this.sendBySlot(elsewhere, sentAt)
    // A server cannot reply this about declared keys.
    else for (const { reject } of elsewhere) reject(unreadable('expected all keys to be here'))
  }

  #show(request: StoreRequest, result: StoreResult, slot: number, sentAt: number): void {
    for (const layer of this.#options.observers) layer.onResult(request, result, slot, sentAt)
  }

  /** The results of a batch in the order of its groups; undefined if keys are on another node. */
  #read({ groups, sentAt, looks }: Batch, results: ResultReader): (StoreResult | undefined)[] {
    const { texts, waiters } = this.#options
    const read: (StoreResult | undefined)[] = []
    for (const [plan, group] of groups) {
      const { reports } = texts.of(plan)
      for (const { request } of group) {
        const result = results.next(request, reports)
        const behindMs = looks && request.op < REFUND ? waiters.read(request, results, sentAt) : 0
        read.push(result && behindMs > 0 ? { ...result, allowed: false, behindMs } : result)
      }
    }
    results.end()
    return read
  }
}

const TOO_MANY = new SluiceError('STORE_UNAVAILABLE', `redis: ${MAX_UNSENT} decisions wait for a connection already`)
