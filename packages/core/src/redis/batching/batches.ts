import { BATCH_BOUNDS, type Histogram } from '../../store/health.js'
import { type Cell, CONSUME, type Plan, REFUND, type StoreRequest, type StoreResult } from '../../store/store.js'
import { BoundedCounts } from '../../util/bounded-counts.js'
import { SluiceError } from '../../util/errors.js'
import { watchers } from '../../util/listeners.js'
import type { Connection } from '../clients/connection.js'
import type { Breaker } from '../health/breaker.js'
import { probeKey } from '../health/probing.js'
import { ResultReader } from '../scripts/decode.js'
import { type Encoded, encode, encodeOne } from '../scripts/encode.js'
import { unreadable } from '../scripts/reply-reader.js'
import { isTryAgain, type Pulse, run } from '../scripts/run.js'
import { BANS, decideScriptFor, oneScriptFor, REFUNDS_OR_RENEWS, TURNS } from '../scripts/script.js'
import type { LuaScript } from '../scripts/scripts.generated.js'
import { waitingKeys } from '../scripts/turns.js'
import type { CrossSlots } from '../slots/cross-slots.js'
import { decideOnMovingSlot } from '../slots/moving-slot.js'
import { ClusterWaitingMarker } from './cluster-waiting-marker.js'
import type { Outbox } from './outbox.js'
import type { PlanTexts } from './plan-texts.js'
import { UnwaitedQueues } from './unwaited-queues.js'

export interface BatchOptions {
  readonly prefix: string
  readonly timeoutMs: number
  /** Most decisions in one script run. */
  readonly batch: number
  readonly clock: (() => number) | undefined
  /** The key that exists while any identity is blocked; undefined in a cluster, where no key shares a slot with all others. */
  readonly marker: string | undefined
  /** The key that exists while a request waits for its turn across processes. */
  readonly waitingMarker: string
  /** Which masters of a cluster decide keys of several slots in one script; undefined where none is to. */
  readonly crossSlots: CrossSlots | undefined
  /** Called with every reply, in the order of decisions, before its caller gets it; `sentAt` is by the performance clock. */
  readonly onResult: (request: StoreRequest, result: StoreResult, slot: number, sentAt: number) => void
  readonly texts: PlanTexts
  /** Gets the outcome of each run. */
  readonly breaker: Breaker
  /** What sends decisions at the end of a turn of the event loop. */
  readonly outbox: Outbox
}

/** How long after a block was seen batches bring their block keys without asking first. */
const ASSUME_BLOCKED_MS = 1000

/** For how long after a refusal that is a strike decisions are sent to a script that strikes at once, without a try of one that does not. */
const ASSUME_STRIKES_MS = 1000

/** So many decisions may wait for a connection. More would be answered too late to be of use, and all at once. */
const MOST_UNSENT = 10_000

/** Scripts of one plan alone, per store: newer servers keep some hundreds of scripts, and forget the others. */
const MOST_ONES = 64

interface Pending {
  readonly request: StoreRequest
  /** Of its keys; of several, the first. */
  readonly slot: number
  readonly resolve: (result: StoreResult) => void
  readonly reject: (error: Error) => void
  /** How it is decided where its keys turn out to be on several nodes; undefined where they are on one slot. */
  readonly apart: (() => Promise<StoreResult>) | undefined
}

/** What is sent as one script run. */
interface Batch {
  readonly entries: readonly Pending[]
  /** Of its keys; where it is sent to a node, of the first of them. */
  readonly slot: number
  /** The master that it is sent to, where its keys are of several slots. */
  readonly node: string | undefined
  readonly groups: ReadonlyMap<Plan, readonly Pending[]>
  /** By the performance clock: when it was made, and once it is sent, when that was. */
  sentAt: number
  isSent: boolean
  /** Whether its decisions look for requests that wait for their turn across processes. */
  readonly looks: boolean
}

/** How a batch is decided. */
interface BatchScript {
  readonly script: LuaScript
  readonly encoded: () => Encoded
  /** Whether it may reply that it has decided nothing, because an identity is blocked. */
  readonly mayBeEmpty: boolean
  /** Whether refusals that are strikes, which have charged nothing, are to be decided again by a script that strikes. */
  readonly strikesApart: boolean
}

/**
 * Collects the decisions of one turn of the event loop and sends them as one script run.
 * In a cluster there is one run per master, or where that does not support it, per slot that is asked for.
 */
export class Batches {
  readonly #connection: Connection
  readonly #options: BatchOptions
  /** The scripts that decide one charge alone, by their parameters; and by plan, null where there are enough without its. */
  readonly #ones = new Map<string, LuaScript>()
  readonly #onesByPlan = new WeakMap<Plan, LuaScript | null>()
  /** What waits for the end of this turn, by master, or by slot where that is not known (all in one where there are no slots). */
  #waiting = new Map<string | number, Pending[]>()
  readonly #crossSlots: CrossSlots | undefined
  readonly #unwaited = new UnwaitedQueues()
  readonly #clusterMarker: ClusterWaitingMarker | undefined
  /** The marker of waiters where scripts can look for it and set it. */
  readonly #waitingMarker: string | undefined
  #isDue = false
  /** How many batches are neither answered nor given up. */
  #inFlight = 0
  /** How many decisions are in those. */
  #deciding = 0
  /** How many decisions are in batches that wait for a connection. */
  #unsent = 0
  /** How many decisions batches have had, of those while counting was on. */
  #sizes: BoundedCounts | undefined
  /** Of each server, by address. */
  readonly #pulses = new Map<string, Pulse>()
  /** Callers that wait until there are none. */
  #drained: (() => void)[] = []
  /** By the performance clock. */
  #blockedUntil = 0
  #strikingUntil = 0

  constructor(connection: Connection, options: BatchOptions) {
    this.#connection = connection
    this.#options = options
    const { timeoutMs, crossSlots, waitingMarker } = options
    this.#crossSlots = crossSlots
    if (!connection.isCluster) this.#waitingMarker = waitingMarker
    else this.#clusterMarker = new ClusterWaitingMarker(connection, waitingMarker, timeoutMs, this.#unwaited)
  }

  /** Whether a decision has to look for requests that wait for their turn across processes: not where none was found a moment ago. */
  looksForWaiters(request: StoreRequest): boolean {
    const { plan, turn } = request
    if (!plan.sharesTurns) return false
    this.#clusterMarker?.look()
    if (turn !== undefined) return true
    return !this.#unwaited.has(this.#options.waitingMarker) && !this.#unwaited.hasAll(this.#recordsOf(request))
  }

  /** Requests of this plan wait for their turn across processes, which others are to see. */
  noteWaiting({ sharesTurns }: Plan): void {
    this.#unwaited.delete(this.#options.waitingMarker)
    if (sharesTurns) this.#clusterMarker?.set(sharesTurns.ttlMs)
  }

  /** The records of waiters, one for each cell. */
  #recordsOf(request: StoreRequest): string[] {
    return waitingKeys(request, this.#options.texts.of(request.plan), this.#options.prefix)
  }

  /** `apart`: for keys that are on one master as far as is known, of what does not look for waiters. */
  decide(request: StoreRequest, slot = 0, apart?: () => Promise<StoreResult>): Promise<StoreResult> {
    return new Promise((resolve, reject) => {
      const pending = { request, slot, resolve, reject, apart }
      const looks = !apart && this.looksForWaiters(request)
      const at = looks ? -1 - slot : (this.#crossSlots && this.#connection.nodeOf(slot)) || slot
      const entries = this.#waiting.get(at)
      if (!entries) this.#waiting.set(at, [pending])
      else if (entries.length < this.#options.batch) entries.push(pending)
      else {
        // Full: it goes now, and this one opens the next.
        this.#waiting.set(at, [pending])
        this.#options.outbox.sendFirst()
        this.#dispatch(entries, at)
      }
      if (!this.#isDue) {
        this.#isDue = true
        this.#options.outbox.add(this.#sendWaiting)
      }
    })
  }

  readonly #sendWaiting = (): void => {
    this.#isDue = false
    const waiting = this.#waiting
    this.#waiting = new Map()
    for (const [at, entries] of waiting) this.#dispatch(entries, at)
  }

  #dispatch(entries: readonly Pending[], at: string | number): void {
    const { slot } = entries[0] as Pending
    if ((at as number) < 0) this.#sendLooking(entries, slot)
    else if (!this.#crossSlots || typeof at === 'number') this.#send(entries, slot)
    else if (entries.every((pending) => pending.slot === slot && !pending.apart)) this.#send(entries, slot)
    else if (this.#crossSlots.isSupported(at)) this.#sendToNode(entries, at)
    else {
      this.#crossSlots.tryOut(at, probeKeys(this.#options.prefix, entries))
      this.#sendBySlot(entries)
    }
  }

  /** Refunds and releases go by slot: done in part it could not be undone. So does what is asked of the same slot, to stay in order. */
  #sendToNode(entries: readonly Pending[], node: string): void {
    const hasRefund = (slot: number) => entries.some((other) => other.slot === slot && other.request.op >= REFUND)
    const apart = entries.some(({ request }) => request.op >= REFUND)
      ? entries.filter(({ slot }) => hasRefund(slot))
      : []
    const together = apart.length > 0 ? entries.filter((pending) => !apart.includes(pending)) : entries
    if (together.length > 0) this.#send(together, (together[0] as Pending).slot, node)
    this.#sendBySlot(apart)
  }

  #sendBySlot(entries: readonly Pending[], sentAt = performance.now()): void {
    const bySlot = new Map<number, Pending[]>()
    for (const pending of entries) {
      const { slot, apart, resolve, reject } = pending
      const others = bySlot.get(slot)
      if (apart) apart().then(resolve, reject)
      else if (others) others.push(pending)
      else bySlot.set(slot, [pending])
    }
    for (const [slot, pendings] of bySlot) this.#send(pendings, slot, undefined, sentAt)
  }

  /** Sends decisions that look for requests that wait for their turn across processes. */
  #sendLooking(entries: readonly Pending[], slot: number): void {
    for (const { request } of entries) {
      if (!request.turn) continue
      for (const record of this.#recordsOf(request)) this.#unwaited.delete(record)
      this.noteWaiting(request.plan)
    }
    this.#send(entries, slot, undefined, performance.now(), true)
  }

  /** How many decisions wait for a reply. */
  get pending(): number {
    let waiting = 0
    for (const entries of this.#waiting.values()) waiting += entries.length
    return waiting + this.#deciding
  }

  get #sized(): BoundedCounts {
    this.#sizes ??= new BoundedCounts(BATCH_BOUNDS)
    return this.#sizes
  }

  /** Decisions per batch. */
  get sizes(): Histogram {
    return this.#sized.read()
  }

  /** Resolves when everything sent has been answered or given up. */
  drain(): Promise<void> {
    this.#options.outbox.flush()
    return new Promise((resolve) => {
      if (this.#inFlight === 0) resolve()
      else this.#drained.push(resolve)
    })
  }

  /** All that was asked is sent, and answered or given up, when it resolves. */
  close(): Promise<void> {
    return this.drain()
  }

  #send(entries: readonly Pending[], slot: number, node?: string, sentAt = performance.now(), looks = false): void {
    this.#inFlight++
    this.#deciding += entries.length
    if (watchers.isCounting) this.#sized.add(entries.length)
    const batch: Batch = { entries, slot, node, groups: byPlan(entries), sentAt, isSent: false, looks }
    if (this.#unsent >= MOST_UNSENT) {
      for (const { reject } of entries) reject(TOO_MANY)
      this.#over(entries)
      return
    }
    this.#unsent += entries.length
    this.#run(batch, this.#leftMs(sentAt), sentAt < this.#blockedUntil)
  }

  #leftMs(sentAt: number): number {
    return Math.max(1, this.#options.timeoutMs - (performance.now() - sentAt))
  }

  /**
   * Sends a batch without block keys where a marker says that no identity is blocked; a decision alone asks for its own
   * block key in the same way, where there is no marker. If one is blocked, nothing was decided, and it goes again with
   * block keys; and so do the batches of the next moment. Likewise what may ban: first it is sent to a script that is smaller
   * and cannot strike. What that refuses is charged nowhere, and is decided again, as a later decision, by one that can.
   *
   * Holds in every order in which commands of several stores reach Redis and replies come back
   * (`test/deep/interleavings/blocks.test.ts`): while a block holds in Redis, no decision that reaches it is
   * admitted, and each is charged at most once. That takes a marker that lives as long as any block.
   */
  #run(batch: Batch, withinMs: number, bringsBlockKeys: boolean): void {
    const { node, slot } = batch
    const how = this.#scriptFor(batch, bringsBlockKeys)
    const pulse = this.#pulseOf(node ?? this.#connection.nodeOf(slot))
    run(this.#connection, withinMs, how.script, how.encoded, { node, pulse, onSent: () => this.#sent(batch) }).then(
      (reply) => this.#heard(batch, reply, how),
      (error) => this.#failed(batch, error),
    )
  }

  #scriptFor(batch: Batch, bringsBlockKeys: boolean): BatchScript {
    const { prefix, clock, marker } = this.#options
    const { entries, groups, node, looks } = batch
    const [only, ...others] = entries as [Pending, ...Pending[]]
    const strikes = entries.some(({ request }) => request.strike !== undefined)
    const strikesApart = strikes && this.#canStrikeApart(batch)
    const isAlone = others.length === 0 && !bringsBlockKeys && !looks && strikes === strikesApart
    const one = isAlone ? this.#oneFor(batch, only) : undefined
    if (one) {
      const { request } = only
      const encoded = () => encodeOne(request, this.#options.texts.of(request.plan), prefix, clock?.(), marker)
      return { script: one, encoded, mayBeEmpty: true, strikesApart }
    }
    let parts = (strikes && !strikesApart ? BANS : 0) | (looks ? TURNS : 0)
    for (const [plan, group] of groups) {
      parts |= this.#options.texts.of(plan).parts
      if (group.some(({ request }) => request.op >= REFUND)) parts |= REFUNDS_OR_RENEWS
    }
    const byMarker = bringsBlockKeys ? undefined : marker
    const keys = node === undefined ? 'declared' : 'undeclared'
    const waitingMarker = this.#waitingMarker
    const encoded = () =>
      encode(groups, this.#options.texts.of, { prefix, now: clock?.(), keys, parts, marker: byMarker, waitingMarker })
    return { script: decideScriptFor(parts), encoded, mayBeEmpty: byMarker !== undefined, strikesApart }
  }

  /** Whether refusals that are strikes can be decided again: not if they are charged. Where there was one a moment ago, none is tried without. */
  #canStrikeApart({ entries, looks }: Batch): boolean {
    if (looks || performance.now() < this.#strikingUntil) return false
    return entries.every(({ request }) => request.strike === undefined || request.op === CONSUME)
  }

  /** The script for this decision alone, if it is a plain charge of one cell, and that script one of those that are made. */
  #oneFor({ node }: Batch, { request }: Pending): LuaScript | undefined {
    const { op, costs, needs, plan } = request
    // It knows one block key.
    if (this.#options.marker === undefined && this.#options.texts.of(plan).blockSuffixes.length > 1) return undefined
    const isPlain = op === CONSUME && !needs && plan.cells.length === 1 && plan.identities === 1 && costs[0] !== 0
    if (node !== undefined || !isPlain) return undefined
    const [cell] = plan.cells as [Cell]
    let script = this.#onesByPlan.get(plan)
    if (script === undefined) {
      script = this.#ones.get(paramsOf(cell)) ?? this.#makeOne(cell)
      this.#onesByPlan.set(plan, script)
    }
    return script ?? undefined
  }

  #makeOne(cell: Cell): LuaScript | null {
    if (this.#ones.size >= MOST_ONES) return null
    const script = oneScriptFor(cell)
    this.#ones.set(paramsOf(cell), script)
    return script
  }

  #pulseOf(node: string): Pulse {
    let pulse = this.#pulses.get(node)
    if (!pulse) {
      pulse = { heardAt: 0 }
      this.#pulses.set(node, pulse)
    }
    return pulse
  }

  #sent(batch: Batch): void {
    if (batch.isSent) return
    batch.isSent = true
    batch.sentAt = performance.now()
    this.#unsent -= batch.entries.length
  }

  #heard(batch: Batch, reply: unknown, how: BatchScript): void {
    const { mayBeEmpty, strikesApart } = how
    try {
      const results = new ResultReader(reply)
      if (mayBeEmpty && results.needsBlockKeys) {
        const now = performance.now()
        this.#blockedUntil = now + ASSUME_BLOCKED_MS
        this.#run(batch, this.#leftMs(batch.sentAt), true)
        return
      }
      this.#resolve(batch, results, strikesApart)
    } catch (error) {
      this.#failed(batch, error as Error)
      return
    }
    this.#options.breaker.succeeded(batch.slot)
    this.#over(batch.entries)
  }

  #failed(batch: Batch, error: Error): void {
    const { entries, slot, node } = batch
    const { breaker, prefix } = this.#options
    if (!batch.isSent) this.#unsent -= entries.length
    batch.isSent = true
    if (node !== undefined) this.#crossSlots?.failed(node)
    else if (isTryAgain(error)) {
      this.#decideEach(batch)
      return
    }
    breaker.failed(slot, error, probeKey(prefix, entries[0]?.request.identities[0]))
    for (const { reject } of entries) reject(error)
    this.#over(entries)
  }

  /** Nothing was decided: the slot is on the move, and some of the keys are still here. */
  #decideEach({ entries, slot, sentAt }: Batch): void {
    const { prefix, clock, onResult, breaker } = this.#options
    breaker.succeeded(slot)
    const moving = { connection: this.#connection, prefix, clock, textOf: this.#options.texts.of }
    const decisions = entries.map(async ({ request, resolve, reject }) => {
      try {
        const result = await decideOnMovingSlot(moving, request, () => this.#leftMs(sentAt))
        // What was put together of several results is not reported again.
        onResult({ ...request, fresh: true }, result, slot, sentAt)
        resolve(result)
      } catch (error) {
        reject(error as Error)
      }
    })
    Promise.all(decisions).then(() => this.#over(entries))
  }

  #over(entries: readonly Pending[]): void {
    this.#deciding -= entries.length
    if (--this.#inFlight > 0) return
    for (const resolve of this.#drained.splice(0)) resolve()
  }

  #resolve({ groups, node, entries, slot, sentAt, looks }: Batch, results: ResultReader, strikesApart: boolean): void {
    const resolved: (StoreResult | undefined)[] = []
    for (const [plan, group] of groups) {
      const { reports } = this.#options.texts.of(plan)
      for (const { request } of group) {
        const result = results.next(request, reports)
        const behindMs = looks && request.op < REFUND ? this.#noteWaiters(request, results, sentAt) : 0
        resolved.push(result && behindMs > 0 ? { ...result, allowed: false, behindMs } : result)
      }
    }
    results.end()
    const { onResult } = this.#options
    let i = 0
    const elsewhere: Pending[] = []
    const struck: Pending[] = []
    for (const group of groups.values()) {
      for (const pending of group) {
        const result = resolved[i++]
        if (!result) elsewhere.push(pending)
        else if (strikesApart && pending.request.strike !== undefined && !result.allowed && !result.block)
          struck.push(pending)
        else {
          onResult(pending.request, result, pending.slot, sentAt)
          pending.resolve(result)
        }
      }
    }
    if (node !== undefined) {
      if (elsewhere.length < entries.length) this.#crossSlots?.succeeded(node)
      else this.#crossSlots?.failed(node)
    }
    if (struck.length > 0) {
      this.#strikingUntil = performance.now() + ASSUME_STRIKES_MS
      this.#send(struck, slot, node, sentAt)
    }
    if (elsewhere.length === 0) return
    if (node !== undefined) this.#sendBySlot(elsewhere, sentAt)
    // Of keys that were declared a server cannot say so.
    else for (const { reject } of elsewhere) reject(unreadable('expected all keys to be here'))
  }

  /** Reads what a decision has found of waiters. Returns for how long it is behind one of them. */
  #noteWaiters(request: StoreRequest, results: ResultReader, sentAt: number): number {
    const { behindMs, areForIt, areAnywhere } = results.nextWaiters()
    const marker = this.#options.waitingMarker
    if (areForIt) for (const key of [marker, ...this.#recordsOf(request)]) this.#unwaited.delete(key)
    else for (const key of areAnywhere ? this.#recordsOf(request) : [marker]) this.#unwaited.add(key, sentAt)
    return behindMs
  }
}

const TOO_MANY = new SluiceError('STORE_UNAVAILABLE', `redis: ${MOST_UNSENT} decisions wait for a connection already`)

/** A key on each of some of the slots of these decisions. */
function probeKeys(prefix: string, entries: readonly Pending[]): string[] {
  const bySlot = new Map(entries.map(({ request, slot }) => [slot, request.identities[0]]))
  return [...bySlot.values()].slice(0, 4).map((identity) => probeKey(prefix, identity))
}

function paramsOf({ kernel, params, limits }: Cell): string {
  return `${kernel} ${limits.length} ${params}`
}

function byPlan(entries: readonly Pending[]): ReadonlyMap<Plan, readonly Pending[]> {
  const plan = entries[0]?.request.plan as Plan
  if (entries.every(({ request }) => request.plan === plan)) return new Map([[plan, entries]])
  const groups = new Map<Plan, Pending[]>()
  for (const pending of entries) {
    const group = groups.get(pending.request.plan)
    if (group) group.push(pending)
    else groups.set(pending.request.plan, [pending])
  }
  return groups
}
