import type { WaitingClass, WaitingTurn } from '../store/store.js'
import type { FairQueue, Turn } from './fair-queue.js'

/** A process says again which classes wait in it after this share of the time for which it is believed. */
const RENEW_SHARE = 0.4
/** Longest that news of waiters is held back, so that a burst of newcomers is one message. */
const GATHER_MS = 10
/** Most classes that a process reports, those to be served first: reports stay small, however many priorities there are. */
const MOST_CLASSES = 16

/** How a queue of this process is reported to the others. */
export interface WaitingReport {
  /** For how many ms they believe it. */
  readonly ttlMs: number
  send(process: string, classes: readonly WaitingClass[]): Promise<unknown>
}

/** What the request at the head of a queue sends with its decision, but for the cell that it waits for. */
export type AskingTurn = Omit<WaitingTurn, 'cell'>

interface SharedQueue {
  queue: FairQueue
  readonly report: WaitingReport
  /** What was reported last, as text; undefined where that is not known. */
  reported: string | undefined
  /** By the performance clock. */
  reportedAt: number
  /** How many reports there were, beside those that requests send. */
  messages: number
  isDue: boolean
}

/**
 * Reports the waiters in the queues of this process to the others: with each decision of a waiter, at once when a class comes
 * or goes in between, and again before a report lapses. A report that failed is sent with the next one.
 */
export class SharedTurns {
  /** Identifies this limiter: each limiter of a process has queues of its own. */
  readonly #process = crypto.randomUUID().slice(-12)
  readonly #queues = new Map<string, SharedQueue>()
  #timer: NodeJS.Timeout | undefined

  /** Call it when a queue of this process has gained or lost a turn. */
  changed(id: string, queue: FairQueue, report: WaitingReport): void {
    let shared = this.#queues.get(id)
    if (!shared) {
      // A queue that is over leaves nothing behind.
      if (queue.length === 0) return
      shared = { queue, report, reported: textOf([]), reportedAt: 0, messages: 0, isDue: false }
      this.#queues.set(id, shared)
      this.#timer ??= setInterval(() => this.#renew(), report.ttlMs * RENEW_SHARE).unref()
    }
    shared.queue = queue
    this.#catchUp(id, shared)
  }

  /** What the turn at the head of its queue sends with its decision. */
  ask(queue: FairQueue, turn: Turn): AskingTurn {
    const ifRefused = queue.classes(MOST_CLASSES)
    const own = ifRefused.find(({ headStartMs }) => headStartMs === turn.headStartMs)
    return {
      process: this.#process,
      class: own ?? { headStartMs: turn.headStartMs, since: turn.since },
      ifRefused,
      ifAdmitted: queue.classes(MOST_CLASSES, turn),
    }
  }

  /** Call it before the decision of a turn. Returns what to call with whether it was admitted, undefined where that is not known. */
  asking(id: string, { ifRefused, ifAdmitted }: AskingTurn): (isAdmitted: boolean | undefined) => void {
    const shared = this.#queues.get(id)
    if (!shared) return () => {}
    const messages = shared.messages
    shared.reported = textOf(ifRefused)
    shared.reportedAt = performance.now()
    return (isAdmitted) => {
      // Reports that were sent in between reach the store later.
      if (shared.messages === messages) {
        shared.reported = isAdmitted === undefined ? undefined : textOf(isAdmitted ? ifAdmitted : ifRefused)
      }
      this.#catchUp(id, shared)
    }
  }

  #catchUp(id: string, shared: SharedQueue): void {
    if (shared.isDue) return
    if (shared.reported === textOf(shared.queue.classes(MOST_CLASSES))) {
      if (shared.queue.length === 0) this.#forget(id, shared)
      return
    }
    shared.isDue = true
    const inMs = Math.max(0, shared.reportedAt + GATHER_MS - performance.now())
    setTimeout(() => {
      shared.isDue = false
      const classes = shared.queue.classes(MOST_CLASSES)
      if (shared.reported !== textOf(classes)) this.#send(shared, classes)
      if (classes.length === 0) this.#forget(id, shared)
    }, inMs).unref()
  }

  #forget(id: string, shared: SharedQueue): void {
    if (this.#queues.get(id) === shared) this.#queues.delete(id)
    if (this.#queues.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #send(shared: SharedQueue, classes: readonly WaitingClass[]): void {
    shared.reported = textOf(classes)
    shared.reportedAt = performance.now()
    shared.messages++
    shared.report.send(this.#process, classes).catch(() => {
      shared.reported = undefined
    })
  }

  #renew(): void {
    const now = performance.now()
    for (const [id, shared] of this.#queues) {
      const classes = shared.queue.classes(MOST_CLASSES)
      if (classes.length === 0) this.#catchUp(id, shared)
      else if (now - shared.reportedAt > (shared.report.ttlMs * RENEW_SHARE) / 2) this.#send(shared, classes)
    }
  }
}

function textOf(classes: readonly WaitingClass[]): string {
  return classes.map(({ headStartMs, since }) => `${headStartMs} ${since}`).join()
}
