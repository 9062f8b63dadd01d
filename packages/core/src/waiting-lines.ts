import { type Duration, durationMs } from './duration.js'
import { invalidPolicy, SluiceError } from './errors.js'
import { knownOptions } from './limits/checks.js'
import { pause } from './pause.js'
import { CONSUME, type Op, PEEK } from './store.js'
import type { Verdict } from './verdict.js'

export interface AcquireOptions {
  /** Units: whole, 0 or more. @default 1 */
  readonly cost?: number
  /** Longest wait. @default no bound */
  readonly maxWait?: Duration
  /** Ends the wait; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** Who waits in a line, and how. */
export interface LineOptions {
  /** Units: whole, 0 or more. */
  readonly cost: number
  /** Longest wait, in ms; may be infinite. */
  readonly maxWaitMs: number
  readonly signal?: AbortSignal | undefined
  /** Goes before those that came up to this many ms earlier, all with the same head start as 0. @default 0 */
  readonly headStartMs?: number
  /** Most that may wait in the line, this one included. @default no bound */
  readonly size?: number
  /** What was just said to the same question, if it was refused. */
  readonly refusal?: Verdict | undefined
}

/** What a line needs of whoever waits in it. */
export interface Asker {
  decide(cost: number, op: Op): Verdict | Promise<Verdict>
  giveBack(verdict: Verdict): Promise<unknown>
}

/** A wait that is over before it began, or that took too long. */
export class WaitExceeded extends SluiceError {
  /** Milliseconds after which there would be room, had nobody else come; undefined if unknown. */
  readonly waitMs: number | undefined
  /** The last refusal, if there was one. */
  readonly refusal: Verdict | undefined

  constructor(message: string, waitMs: number | undefined, refusal: Verdict | undefined) {
    super('WAIT_EXCEEDED', message)
    this.waitMs = waitMs
    this.refusal = refusal
  }
}

/** A place in flight frees up when its holder is done, which no clock foretells: look again this often. */
const POLL_MS = 50

interface Turn {
  readonly cost: number
  /** When it came, less its head start: who came first goes first. */
  readonly since: number
  /** Ends its pause, if it is in one. */
  wake: (() => void) | undefined
}

/** @throws SluiceError `INVALID_POLICY` */
export function acquireOptions(where: string, options: AcquireOptions): LineOptions {
  knownOptions(`${where}: acquire`, options, ['cost', 'maxWait', 'signal'])
  const { cost = 1, maxWait, signal } = options
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    invalidPolicy(where, 'signal', 'an AbortSignal', signal)
  }
  const maxWaitMs = maxWait === undefined ? Number.POSITIVE_INFINITY : durationMs(where, 'maxWait', maxWait)
  return { cost, maxWaitMs, signal }
}

/**
 * The lines of those that wait for one limiter, one line per key, in this process: first in, first
 * out, but for head starts. Only the first in line asks the store, so the admission stays exact
 * across processes; who gets it first is settled in each process.
 */
export class WaitingLines {
  readonly #lines = new Map<string, Turn[]>()

  /** How many keys are waited for. */
  get size(): number {
    return this.#lines.size
  }

  has(id: string): boolean {
    return this.#lines.has(id)
  }

  /** Something was given back: whoever sleeps at the head of a line looks again. */
  wake(): void {
    for (const line of this.#lines.values()) line[0]?.wake?.()
  }

  /**
   * Waits until admitted. In a queueing limit that means a place in the queue: `delayMs` is still to be waited.
   *
   * @throws WaitExceeded at once where that is foreseen; the signal's reason when aborted, with nothing charged
   */
  async admission(where: string, id: string, asker: Asker, options: LineOptions): Promise<Verdict> {
    const { cost, maxWaitMs, signal, headStartMs = 0, size = Number.POSITIVE_INFINITY } = options
    const deadline = performance.now() + maxWaitMs
    const left = () => deadline - performance.now()
    const tooLong = (refusal: Verdict | undefined, waitMs?: number) =>
      new WaitExceeded(`${where}: acquire: ${whyTooLong(refusal, maxWaitMs)}`, waitMs, refusal)
    signal?.throwIfAborted()

    const ahead = this.#lines.get(id) ?? []
    if (ahead.length >= size) {
      const last = options.refusal ?? (await asker.decide(cost, PEEK))
      throw tooLong(last, await expectedWait(asker, last, unitsOf(ahead) + cost))
    }
    const turn = this.#join(id, cost, performance.now() - headStartMs)
    try {
      const line = this.#lines.get(id) as Turn[]
      // Fresh only for who need not wait for others first.
      let { refusal } = options
      if (line[0] !== turn) {
        const last = refusal ?? (await asker.decide(cost, PEEK))
        if (last.reason === 'impossible') throw tooLong(last)
        const waitMs = await expectedWait(asker, last, unitsOf(line.slice(0, line.indexOf(turn) + 1)))
        if (waitMs > left()) throw tooLong(last, waitMs)
      }
      for (;;) {
        if (line[0] !== turn) {
          refusal = undefined
          if (left() <= 0) throw tooLong(options.refusal)
          await this.#sleep(turn, left(), signal)
          continue
        }
        const verdict = refusal ?? (await asker.decide(cost, cost === 0 ? PEEK : CONSUME))
        refusal = undefined
        if (verdict.allowed) {
          if (!signal?.aborted && verdict.delayMs <= Math.max(0, left())) return verdict
          await asker.giveBack(verdict)
          throw signal?.aborted ? signal.reason : tooLong(verdict, verdict.delayMs)
        }
        const wait = foreseen(verdict)
        // Never is too long even for those who would wait for ever.
        if (verdict.reason === 'impossible' || wait > left() || left() <= 0) throw tooLong(verdict)
        await this.#sleep(turn, wait > 0 ? wait : Math.min(POLL_MS, Math.max(1, left())), signal)
      }
    } finally {
      this.#leave(id, turn)
    }
  }

  async #sleep(turn: Turn, ms: number, signal: AbortSignal | undefined): Promise<void> {
    await pause(ms, signal, (wake) => {
      turn.wake = wake
      return () => {
        turn.wake = undefined
      }
    })
  }

  #join(id: string, cost: number, since: number): Turn {
    const turn: Turn = { cost, since, wake: undefined }
    const line = this.#lines.get(id)
    if (!line) this.#lines.set(id, [turn])
    else line.splice(line.findLastIndex((other) => other.since <= since) + 1, 0, turn)
    return turn
  }

  #leave(id: string, turn: Turn): void {
    const line = this.#lines.get(id)
    const place = line?.indexOf(turn) ?? -1
    if (!line || place < 0) return
    line.splice(place, 1)
    if (line.length === 0) this.#lines.delete(id)
    else if (place === 0) line[0]?.wake?.()
  }
}

function unitsOf(turns: readonly Turn[]): number {
  return turns.reduce((sum, { cost }) => sum + cost, 0)
}

/** How long a refusal is sure to last, in ms; 0 where only a place in flight is missing, which may be freed any time. */
function foreseen(verdict: Verdict): number {
  if (verdict.retryAfterMs === undefined) return Number.POSITIVE_INFINITY
  if (verdict.block) return verdict.block.remainingMs
  return verdict.limits.reduce(
    (most, { algorithm, retryAfterMs = 0 }) => (algorithm === 'concurrency' ? most : Math.max(most, retryAfterMs)),
    0,
  )
}

/** When the last of `units` would be admitted if they were asked for one after the other, from now. */
async function expectedWait(asker: Asker, { limits }: Verdict, units: number): Promise<number> {
  let most = 0
  for (const [i, { algorithm, limit, windowMs, capacity }] of limits.entries()) {
    if (algorithm === 'concurrency' || limit === 0 || units === 0) continue
    // Every `capacity` units take the time in which that many come back; the rest is up to the present state.
    const rounds = Math.floor((units - 1) / capacity)
    const rest = units - rounds * capacity
    const first = await asker.decide(rest, PEEK)
    most = Math.max(most, (first.limits[i]?.retryAfterMs ?? 0) + Math.ceil((rounds * capacity * windowMs) / limit))
  }
  return most
}

function whyTooLong(verdict: Verdict | undefined, maxWaitMs: number): string {
  if (verdict?.reason === 'impossible') return 'the cost is larger than a limit ever admits'
  return `the wait would exceed ${maxWaitMs} ms`
}
