import type { WaitingClass, WaitingTurn } from '../store/store.js'
import type { FairLine, Turn } from './fair-line.js'

/** A process says again which classes wait in it after this share of the time for which it is believed. */
const RENEW_SHARE = 0.4
/** Longest that news of waiters is held back, so that a burst of newcomers is one message. */
const GATHER_MS = 10
/** Most classes that a process tells of, those to be served first: what it tells stays small, however many priorities there are. */
const MOST_CLASSES = 16

/** How other processes are told of a line of this one. */
export interface Telling {
  /** For how many ms they believe it. */
  readonly ttlMs: number
  tell(process: string, classes: readonly WaitingClass[]): Promise<unknown>
}

/** What the request at the head of a line asks with, but for the cell that it waits for. */
export type AskingTurn = Omit<WaitingTurn, 'cell'>

interface SharedLine {
  line: FairLine
  readonly telling: Telling
  /** What others have been told last, as a text; undefined where that is not known. */
  told: string | undefined
  /** By the performance clock. */
  toldAt: number
  /** How many messages there were, beside what requests ask with. */
  messages: number
  isDue: boolean
}

/**
 * Keeps other processes told of the waiters in the lines of this one: with each request that asks, at once when a class comes or
 * goes meanwhile, and again in time. What could not be told is told with the next of these.
 */
export class SharedTurns {
  /** What tells: two limiters of one process have lines of their own, and are two. */
  readonly #process = crypto.randomUUID().slice(-12)
  readonly #lines = new Map<string, SharedLine>()
  #timer: NodeJS.Timeout | undefined

  /** A line of this process has another turn, or one less. */
  changed(id: string, line: FairLine, telling: Telling): void {
    let shared = this.#lines.get(id)
    if (!shared) {
      // A line that is over leaves nothing behind.
      if (line.length === 0) return
      shared = { line, telling, told: textOf([]), toldAt: 0, messages: 0, isDue: false }
      this.#lines.set(id, shared)
      this.#timer ??= setInterval(() => this.#renew(), telling.ttlMs * RENEW_SHARE).unref()
    }
    shared.line = line
    this.#catchUp(id, shared)
  }

  /** What a turn asks with, which is the first of its line. */
  ask(line: FairLine, turn: Turn): AskingTurn {
    const ifRefused = line.classes(MOST_CLASSES)
    const own = ifRefused.find(({ headStartMs }) => headStartMs === turn.headStartMs)
    return {
      process: this.#process,
      class: own ?? { headStartMs: turn.headStartMs, since: turn.since },
      ifRefused,
      ifAdmitted: line.classes(MOST_CLASSES, turn),
    }
  }

  /** To be called when a turn asks: returns what to call with whether it was admitted, undefined where that is not known. */
  asking(id: string, { ifRefused, ifAdmitted }: AskingTurn): (isAdmitted: boolean | undefined) => void {
    const shared = this.#lines.get(id)
    if (!shared) return () => {}
    const messages = shared.messages
    shared.told = textOf(ifRefused)
    shared.toldAt = performance.now()
    return (isAdmitted) => {
      // What was told meanwhile has reached the store later.
      if (shared.messages === messages) {
        shared.told = isAdmitted === undefined ? undefined : textOf(isAdmitted ? ifAdmitted : ifRefused)
      }
      this.#catchUp(id, shared)
    }
  }

  #catchUp(id: string, shared: SharedLine): void {
    if (shared.isDue) return
    if (shared.told === textOf(shared.line.classes(MOST_CLASSES))) {
      if (shared.line.length === 0) this.#forget(id, shared)
      return
    }
    shared.isDue = true
    const inMs = Math.max(0, shared.toldAt + GATHER_MS - performance.now())
    setTimeout(() => {
      shared.isDue = false
      const classes = shared.line.classes(MOST_CLASSES)
      if (shared.told !== textOf(classes)) this.#tell(shared, classes)
      if (classes.length === 0) this.#forget(id, shared)
    }, inMs).unref()
  }

  #forget(id: string, shared: SharedLine): void {
    if (this.#lines.get(id) === shared) this.#lines.delete(id)
    if (this.#lines.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #tell(shared: SharedLine, classes: readonly WaitingClass[]): void {
    shared.told = textOf(classes)
    shared.toldAt = performance.now()
    shared.messages++
    shared.telling.tell(this.#process, classes).catch(() => {
      shared.told = undefined
    })
  }

  #renew(): void {
    const now = performance.now()
    for (const [id, shared] of this.#lines) {
      const classes = shared.line.classes(MOST_CLASSES)
      if (classes.length === 0) this.#catchUp(id, shared)
      else if (now - shared.toldAt > (shared.telling.ttlMs * RENEW_SHARE) / 2) this.#tell(shared, classes)
    }
  }
}

function textOf(classes: readonly WaitingClass[]): string {
  return classes.map(({ headStartMs, since }) => `${headStartMs} ${since}`).join()
}
