import { randomUUID } from 'node:crypto'
import type { WaitingClass, WaitingTurn } from '../../store/store.js'
import { outsideRequests } from '../../util/outside-requests.js'
import { FairQueue, type Turn } from './fair-queue.js'

/** A process repeats its report of waiting classes after this share of the report's `ttl`. */
const RENEW_SHARE = 0.4
/** Maximum delay of a report, so that a burst of newcomers is one message. */
const GATHER_MS = 10
/** Maximum of classes that a process reports, those to be served first. Reports stay small with any number of priorities. */
const MAX_CLASSES = 16

/** The report of a queue of this process to the others. */
export interface WaitingReport {
  /** The time in ms for which they trust it. */
  readonly ttlMs: number
  send(process: string, classes: readonly WaitingClass[]): Promise<unknown>
}

/** The part of a decision's turn that the request at the head of a queue sends, without the cell that it waits for. */
export type HeadTurn = Omit<WaitingTurn, 'cell'>

interface SharedQueue {
  queue: FairQueue
  report: WaitingReport
  /** The last report, as text; undefined if it is unknown. */
  reported: string | undefined
  /** The time of that report, by the performance clock. */
  reportedAt: number
  /** The number of reports, without those that requests send. */
  messages: number
  isDue: boolean
}

/**
 * Reports the waiters in the queues of this process to the others. It sends a report with each decision of a waiter, at once when
 * a class appears or disappears in between, and again before a report lapses. A failed report is sent with the next one.
 */
export class SharedTurns {
  /** Identifies this limiter: each limiter of a process has its own queues. */
  readonly #process = randomUUID().slice(-12)
  readonly #queues = new Map<string, SharedQueue>()
  #timer: NodeJS.Timeout | undefined
  /** The shortest `ttl` of the reports: by it, all are renewed. */
  #shortestMs = 0

  /** Takes the report of a queue of this process, which has turns. Without one, other processes no longer see it. */
  share(id: string, queue: FairQueue, report: WaitingReport | undefined): void {
    let shared = this.#queues.get(id)
    if (!shared) {
      if (!report) return
      shared = { queue, report, reported: textOf([]), reportedAt: 0, messages: 0, isDue: false }
      this.#queues.set(id, shared)
    }
    // The last report was for another time.
    if (report && report.ttlMs !== shared.report.ttlMs) shared.reported = undefined
    shared.queue = report ? queue : new FairQueue()
    shared.report = report ?? shared.report
    this.#renewWithin(shared.report.ttlMs)
    this.#catchUp(id, shared)
  }

  /** Takes a change of a queue of this process: it has lost a turn. */
  changed(id: string): void {
    const shared = this.#queues.get(id)
    if (shared) this.#catchUp(id, shared)
  }

  /** The turn that the head of its queue sends with its decision. */
  headTurn(queue: FairQueue, turn: Turn): HeadTurn {
    const ifRefused = queue.classes(MAX_CLASSES)
    const ownClass = ifRefused.find(({ headStartMs }) => headStartMs === turn.headStartMs)
    return {
      process: this.#process,
      class: ownClass ?? { headStartMs: turn.headStartMs, since: turn.since },
      ifRefused,
      ifAdmitted: queue.classes(MAX_CLASSES, turn),
    }
  }

  /** Takes the start of a turn's decision. Returns a function to call with whether it was admitted, undefined if unknown. */
  begin(id: string, { ifRefused, ifAdmitted }: HeadTurn): (isAdmitted: boolean | undefined) => void {
    const shared = this.#queues.get(id)
    if (!shared) return () => {}
    const messages = shared.messages
    shared.reported = textOf(ifRefused)
    shared.reportedAt = performance.now()
    return (isAdmitted) => {
      // Reports sent in between reach the store later.
      if (shared.messages === messages) {
        shared.reported = isAdmitted === undefined ? undefined : textOf(isAdmitted ? ifAdmitted : ifRefused)
      }
      this.#catchUp(id, shared)
    }
  }

  #catchUp(id: string, shared: SharedQueue): void {
    if (shared.isDue) return
    if (shared.reported === textOf(shared.queue.classes(MAX_CLASSES))) {
      if (shared.queue.length === 0) this.#forget(id, shared)
      return
    }
    shared.isDue = true
    const inMs = Math.max(0, shared.reportedAt + GATHER_MS - performance.now())
    setTimeout(() => {
      shared.isDue = false
      const classes = shared.queue.classes(MAX_CLASSES)
      if (shared.reported !== textOf(classes)) this.#send(shared, classes)
      if (classes.length === 0) this.#forget(id, shared)
    }, inMs).unref()
  }

  #renewWithin(ttlMs: number): void {
    if (this.#timer && this.#shortestMs <= ttlMs) return
    clearInterval(this.#timer)
    this.#shortestMs = ttlMs
    this.#timer = outsideRequests(() => setInterval(() => this.#renew(), ttlMs * RENEW_SHARE).unref())
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
      if (shared.queue.length === 0) this.#catchUp(id, shared)
      else if (now - shared.reportedAt > (shared.report.ttlMs * RENEW_SHARE) / 2) {
        this.#send(shared, shared.queue.classes(MAX_CLASSES))
      }
    }
  }
}

function textOf(classes: readonly WaitingClass[]): string {
  return classes.map(({ headStartMs, since }) => `${headStartMs} ${since}`).join()
}
