import { type Plan, REFUND, type StoreRequest, type StoreResult } from '../store/store.js'
import type { Breaker } from './breaker.js'
import type { Connection } from './clients/connection.js'
import { Answers } from './scripts/decode.js'
import { encode, type PlanText, planText } from './scripts/encode.js'
import { keyStart } from './scripts/keys.js'
import { run } from './scripts/run.js'
import { decideScriptFor, type Kind, kindOf, SETTLES } from './scripts/script.js'

export interface BatchOptions {
  readonly prefix: string
  readonly timeoutMs: number
  /** Most decisions in one script run. */
  readonly batch: number
  readonly clock: (() => number) | undefined
  /** The key that is there while somebody is blocked; undefined in a cluster, where no key is beside all others. */
  readonly marker: string | undefined
  /** Told of every answer, in the order of decisions, before its asker; `sentAt` is by the performance clock. */
  readonly onAnswer: (request: StoreRequest, result: StoreResult, slot: number, sentAt: number) => void
  /** Hears how each run went. */
  readonly breaker: Breaker
}

/** How long after a block was seen batches bring their block keys without asking first. */
const ASSUME_BLOCKED_MS = 1000

interface Pending {
  readonly request: StoreRequest
  readonly resolve: (result: StoreResult) => void
  readonly reject: (error: Error) => void
}

/** What is sent as one script run. */
interface Batch {
  readonly line: readonly Pending[]
  readonly slot: number
  readonly groups: ReadonlyMap<Plan, readonly Pending[]>
  /** By the performance clock. */
  readonly sentAt: number
}

/**
 * Collects the decisions of one turn of the event loop and sends them as one script run.
 * In a cluster there is one run per slot that is asked for.
 */
export class Batches {
  readonly #connection: Connection
  readonly #options: BatchOptions
  /** The kinds of cells that decisions have had so far. */
  readonly kinds = new Set<Kind>()
  readonly #texts = new WeakMap<Plan, PlanText>()
  readonly #textOf = (plan: Plan): PlanText => {
    let text = this.#texts.get(plan)
    if (!text) {
      text = planText(plan)
      this.#texts.set(plan, text)
      for (const cell of plan.cells) this.kinds.add(kindOf(cell))
    }
    return text
  }
  /** What waits for the end of this turn, by slot (all in one where there are no slots). */
  #waiting = new Map<number, Pending[]>()
  #scheduled = false
  /** How many batches are neither answered nor given up. */
  #inFlight = 0
  /** Who waits for there to be none. */
  #drained: (() => void)[] = []
  /** By the performance clock. */
  #blockedUntil = 0

  constructor(connection: Connection, options: BatchOptions) {
    this.#connection = connection
    this.#options = options
  }

  decide(request: StoreRequest, slot: number): Promise<StoreResult> {
    return new Promise((resolve, reject) => {
      const pending = { request, resolve, reject }
      const line = this.#waiting.get(slot)
      if (!line) this.#waiting.set(slot, [pending])
      else if (line.length < this.#options.batch) line.push(pending)
      else {
        // Full: it goes now, and this one opens the next.
        this.#waiting.set(slot, [pending])
        this.#send(line, slot)
      }
      if (!this.#scheduled) {
        this.#scheduled = true
        setImmediate(this.#flush)
      }
    })
  }

  /** Sends what waits; for commands that must not overtake it. */
  readonly #flush = (): void => {
    this.#scheduled = false
    const waiting = this.#waiting
    this.#waiting = new Map()
    for (const [slot, line] of waiting) this.#send(line, slot)
  }

  flush(): void {
    if (this.#waiting.size > 0) this.#flush()
  }

  /** Resolves when everything sent has been answered or given up. */
  drain(): Promise<void> {
    this.flush()
    return new Promise((resolve) => {
      if (this.#inFlight === 0) resolve()
      else this.#drained.push(resolve)
    })
  }

  #send(line: readonly Pending[], slot: number): void {
    const sentAt = performance.now()
    this.#inFlight++
    const { timeoutMs, marker } = this.#options
    const batch: Batch = { line, slot, groups: byPlan(line), sentAt }
    this.#run(batch, timeoutMs, sentAt < this.#blockedUntil ? undefined : marker)
  }

  /**
   * Sends a batch without block keys where a marker says that nobody is blocked. If somebody is, nothing
   * was decided, and it goes again with them; and so do the batches of the next moment.
   *
   * Holds in every order in which commands of several stores reach Redis and replies come back
   * (`test/deep/interleavings/blocks.test.ts`): while a block holds in Redis, no decision that reaches it is let
   * through, and each is charged at most once. That takes a marker that lives as long as any block.
   */
  #run(batch: Batch, withinMs: number, marker: string | undefined): void {
    const { groups } = batch
    const { prefix, clock } = this.#options
    let parts = 0
    for (const [plan, group] of groups) {
      parts |= this.#textOf(plan).parts
      if (group.some(({ request }) => request.op >= REFUND)) parts |= SETTLES
    }
    const encoded = () => encode(groups, this.#textOf, prefix, clock?.(), marker)
    run(this.#connection, withinMs, decideScriptFor(parts), encoded).then(
      (reply) => this.#heard(batch, reply, marker !== undefined),
      (error) => this.#failed(batch, error),
    )
  }

  #heard(batch: Batch, reply: unknown, mayBeEmpty: boolean): void {
    try {
      const results = new Answers(reply)
      if (mayBeEmpty && results.isSomebodyBlocked) {
        const now = performance.now()
        this.#blockedUntil = now + ASSUME_BLOCKED_MS
        this.#run(batch, Math.max(1, this.#options.timeoutMs - (now - batch.sentAt)), undefined)
        return
      }
      this.#settle(batch, results)
    } catch (error) {
      this.#failed(batch, error as Error)
      return
    }
    this.#options.breaker.succeeded(batch.slot)
    this.#over()
  }

  #failed({ line, slot }: Batch, error: Error): void {
    const { breaker, prefix } = this.#options
    breaker.failed(slot, error, probeKey(prefix, line[0]?.request.identities[0]))
    for (const { reject } of line) reject(error)
    this.#over()
  }

  #over(): void {
    if (--this.#inFlight > 0) return
    for (const resolve of this.#drained.splice(0)) resolve()
  }

  #settle({ groups, slot, sentAt }: Batch, results: Answers): void {
    const settled: StoreResult[] = []
    for (const [plan, group] of groups) {
      const { reports } = this.#textOf(plan)
      for (const { request } of group) settled.push(results.next(request, reports))
    }
    results.end()
    const { onAnswer } = this.#options
    let i = 0
    for (const group of groups.values()) {
      for (const { request, resolve } of group) {
        const result = settled[i++] as StoreResult
        onAnswer(request, result, slot, sentAt)
        resolve(result)
      }
    }
  }
}

/** A key of nobody's, on the slot of an identity. */
export function probeKey(prefix: string, identity = ''): string {
  return `${keyStart(prefix, identity)}}:probe`
}

function byPlan(line: readonly Pending[]): ReadonlyMap<Plan, readonly Pending[]> {
  const plan = line[0]?.request.plan as Plan
  if (line.every(({ request }) => request.plan === plan)) return new Map([[plan, line]])
  const groups = new Map<Plan, Pending[]>()
  for (const pending of line) {
    const group = groups.get(pending.request.plan)
    if (group) group.push(pending)
    else groups.set(pending.request.plan, [pending])
  }
  return groups
}
