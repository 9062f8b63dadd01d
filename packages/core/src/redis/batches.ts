import { type Answer, type Ask, type Plan, STRIDE } from '../store.js'
import type { Connection } from './connection.js'
import { decode, encode, type PlanText, planText, SOMEBODY_BLOCKED } from './encode.js'
import { run } from './run.js'
import { decideScriptFor } from './script.js'

export interface BatchOptions {
  readonly prefix: string
  readonly timeoutMs: number
  /** Most decisions in one script run. */
  readonly batch: number
  readonly clock: (() => number) | undefined
  /** The key that is there while somebody is blocked; undefined in a cluster, where no key is beside all others. */
  readonly marker: string | undefined
}

/** How long after a block was seen batches bring their block keys without asking first. */
const ASSUME_BLOCKED_MS = 1000

interface Pending {
  readonly ask: Ask
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: Error) => void
}

/**
 * Collects the decisions of one turn of the event loop and sends them as one script run.
 * In a cluster there is one run per slot that is asked for.
 */
export class Batches {
  readonly #connection: Connection
  readonly #options: BatchOptions
  readonly #texts = new WeakMap<Plan, PlanText>()
  readonly #textOf = (plan: Plan): PlanText => {
    let text = this.#texts.get(plan)
    if (!text) {
      text = planText(plan)
      this.#texts.set(plan, text)
    }
    return text
  }
  /** What waits for the end of this turn, by slot (all in one where there are no slots). */
  #waiting = new Map<number, Pending[]>()
  #scheduled = false
  readonly #inFlight = new Set<Promise<void>>()
  /** By the performance clock. */
  #blockedUntil = 0

  constructor(connection: Connection, options: BatchOptions) {
    this.#connection = connection
    this.#options = options
  }

  decide(ask: Ask, slot: number): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const pending = { ask, resolve, reject }
      const line = this.#waiting.get(slot)
      if (!line) this.#waiting.set(slot, [pending])
      else if (line.length < this.#options.batch) line.push(pending)
      else {
        // Full: it goes now, and this one opens the next.
        this.#waiting.set(slot, [pending])
        this.#send(line)
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
    for (const line of waiting.values()) this.#send(line)
  }

  flush(): void {
    if (this.#waiting.size > 0) this.#flush()
  }

  /** Resolves when everything sent has been answered or given up. */
  async drain(): Promise<void> {
    this.flush()
    await Promise.all(this.#inFlight)
  }

  #send(line: Pending[]): void {
    const sent = this.#run(line).finally(() => this.#inFlight.delete(sent))
    this.#inFlight.add(sent)
  }

  async #run(line: Pending[]): Promise<void> {
    try {
      const groups = byPlan(line)
      settle(groups, await this.#decided(groups))
    } catch (error) {
      for (const { reject } of line) reject(error as Error)
    }
  }

  /**
   * Sends a batch without block keys where a marker says that nobody is blocked. If somebody is, nothing
   * was decided, and it goes again with them; and so do the batches of the next moment.
   *
   * Holds in every order in which commands of several stores reach Redis and replies come back
   * (`test/interleavings/blocks.test.ts`): while a block holds in Redis, no decision that reaches it is let
   * through, and each is charged at most once. That takes a marker that lives as long as any block.
   */
  async #decided(groups: ReadonlyMap<Plan, readonly Pending[]>): Promise<unknown[]> {
    let parts = 0
    for (const plan of groups.keys()) parts |= this.#textOf(plan).parts
    const { prefix, timeoutMs, clock, marker } = this.#options
    const send = async (withinMs: number, instead: string | undefined) =>
      (await run(this.#connection, withinMs, decideScriptFor(parts), () =>
        encode(groups, this.#textOf, prefix, clock?.(), instead),
      )) as unknown[]
    const sentAt = performance.now()
    if (sentAt < this.#blockedUntil) return send(timeoutMs, undefined)
    const reply = await send(timeoutMs, marker)
    if (reply[1] !== SOMEBODY_BLOCKED) return reply
    const now = performance.now()
    this.#blockedUntil = now + ASSUME_BLOCKED_MS
    return send(Math.max(1, timeoutMs - (now - sentAt)), undefined)
  }
}

function byPlan(line: readonly Pending[]): Map<Plan, Pending[]> {
  const groups = new Map<Plan, Pending[]>()
  for (const pending of line) {
    const group = groups.get(pending.ask.plan)
    if (group) group.push(pending)
    else groups.set(pending.ask.plan, [pending])
  }
  return groups
}

function settle(groups: ReadonlyMap<Plan, readonly Pending[]>, reply: readonly unknown[]): void {
  let offset = 1
  for (const [plan, group] of groups) {
    for (const { resolve } of group) {
      resolve(decode(reply, offset, plan))
      offset += plan.reports * STRIDE
    }
  }
}
