import type { Answer, Ask, Plan } from '../store.js'
import type { Breaker } from './breaker.js'
import type { Connection } from './connection.js'
import { Answers } from './decode.js'
import { encode, type PlanText, planText } from './encode.js'
import { keyStart } from './keys.js'
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
  /** Told of every answer, in the order of decisions, before its asker; `sentAt` is by the performance clock. */
  readonly onAnswer: (ask: Ask, answer: Answer, slot: number, sentAt: number) => void
  /** Hears how each run went. */
  readonly breaker: Breaker
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
  async drain(): Promise<void> {
    this.flush()
    await Promise.all(this.#inFlight)
  }

  #send(line: Pending[], slot: number): void {
    const sent = this.#run(line, slot).finally(() => this.#inFlight.delete(sent))
    this.#inFlight.add(sent)
  }

  async #run(line: Pending[], slot: number): Promise<void> {
    const { breaker, prefix } = this.#options
    const sentAt = performance.now()
    try {
      const groups = byPlan(line)
      this.#settle(groups, await this.#decided(groups, sentAt), slot, sentAt)
      breaker.succeeded(slot)
    } catch (error) {
      breaker.failed(slot, error as Error, probeKey(prefix, line[0]?.ask.identities[0]))
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
  async #decided(groups: ReadonlyMap<Plan, readonly Pending[]>, sentAt: number): Promise<Answers> {
    let parts = 0
    for (const plan of groups.keys()) parts |= this.#textOf(plan).parts
    const { prefix, timeoutMs, clock, marker } = this.#options
    const send = async (withinMs: number, instead: string | undefined) =>
      new Answers(
        await run(this.#connection, withinMs, decideScriptFor(parts), () =>
          encode(groups, this.#textOf, prefix, clock?.(), instead),
        ),
      )
    if (sentAt < this.#blockedUntil) return send(timeoutMs, undefined)
    const answers = await send(timeoutMs, marker)
    if (!answers.isSomebodyBlocked) return answers
    const now = performance.now()
    this.#blockedUntil = now + ASSUME_BLOCKED_MS
    return send(Math.max(1, timeoutMs - (now - sentAt)), undefined)
  }

  #settle(groups: ReadonlyMap<Plan, readonly Pending[]>, answers: Answers, slot: number, sentAt: number): void {
    const settled: Answer[] = []
    for (const [plan, group] of groups) {
      const { reports } = this.#textOf(plan)
      for (const { ask } of group) settled.push(answers.next(ask, reports))
    }
    answers.end()
    const { onAnswer } = this.#options
    let i = 0
    for (const group of groups.values()) {
      for (const { ask, resolve } of group) {
        const answer = settled[i++] as Answer
        onAnswer(ask, answer, slot, sentAt)
        resolve(answer)
      }
    }
  }
}

/** A key of nobody's, on the slot of an identity. */
export function probeKey(prefix: string, identity = ''): string {
  return `${keyStart(prefix, identity)}}:probe`
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
