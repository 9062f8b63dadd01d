import { CONSUME, type Op, PEEK } from '../store/store.js'
import { type Duration, durationMs } from '../util/duration.js'
import { invalidPolicy, SluiceError } from '../util/errors.js'
import { pause } from '../util/pause.js'
import { knownOptions } from '../util/validate.js'
import { longestRefusal, type Verdict } from '../verdict/verdict.js'

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
  /** Whether it waits where nothing can decide, until something can; else it is over then. @default false */
  readonly waitsForStore?: boolean
  /** What was just said to the same question, if it was refused. */
  readonly refusal?: Verdict | undefined
}

/** What a line needs of whoever waits in it. */
export interface Asker {
  /** What each limit is waited for by, in the order of a verdict's reports: limits and keys that are one have one line. */
  readonly lines: readonly string[]
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
 * The lines of those that wait for one limiter, in this process: one for each limit and key, in which
 * whoever came first is first, but for head starts. A request waits in the line of the limit that
 * refuses it for longest, and asks when nobody is before it in any line of its limits. Every admission
 * is the store's, so limits stay exact across processes; who gets one first is settled in each process.
 *
 * Holds in every order in which the store may answer, time may pass, and others may leave or give back
 * (`test/deep/interleavings/lines.test.ts`): everyone is told once, admitted ones are charged and nobody else is, nobody
 * sleeps while there is room that this process knows of, and lines end with those who stood in them.
 */
export class WaitingLines {
  readonly #lines = new Map<string, Turn[]>()
  /** How often something was given back. */
  #givenBack = 0

  /** How many lines there are. */
  get size(): number {
    return this.#lines.size
  }

  /** Whether anyone waits in one of these lines. */
  hasAny(lines: readonly string[]): boolean {
    return lines.some((id) => this.#lines.has(id))
  }

  /** Something was given back: whoever sleeps at the head of a line looks again. */
  wake(): void {
    this.#givenBack++
    for (const line of this.#lines.values()) line[0]?.wake?.()
  }

  /**
   * Waits until admitted. In a queueing limit that means a place in the queue: `delayMs` is still to be waited.
   *
   * @throws WaitExceeded at once where that is foreseen; the signal's reason when aborted, with nothing charged
   */
  async admission(where: string, asker: Asker, options: LineOptions): Promise<Verdict> {
    const { cost, maxWaitMs, signal, headStartMs = 0, size = Number.POSITIVE_INFINITY, waitsForStore = false } = options
    const deadline = performance.now() + maxWaitMs
    const left = () => deadline - performance.now()
    const tooLong = (refusal: Verdict | undefined, waitMs?: number) =>
      new WaitExceeded(`${where}: acquire: ${whyTooLong(refusal, maxWaitMs)}`, waitMs, refusal)
    // Never is too long even for those who would wait for ever.
    const isHopeless = ({ reason }: Verdict) => reason === 'impossible' || (reason === 'unavailable' && !waitsForStore)
    signal?.throwIfAborted()

    let { refusal } = options
    let askedAfter = this.#givenBack
    let id =
      (refusal && lineOf(asker, refusal)) ?? asker.lines.find((id) => this.#lines.has(id)) ?? (asker.lines[0] as string)
    const full = this.#lines.get(id) ?? []
    if (full.length >= size) {
      const last = refusal ?? (await asker.decide(cost, PEEK))
      throw tooLong(last, await expectedWait(asker, last, id, unitsOf(full) + cost))
    }
    const turn: Turn = { cost, since: performance.now() - headStartMs, wake: undefined }
    let line = this.#join(id, turn)
    let hasJoined = true
    const moveTo = (other: string) => {
      this.#leave(id, turn)
      id = other
      line = this.#join(id, turn)
      hasJoined = true
    }
    try {
      for (;;) {
        if (line[0] !== turn) {
          if (hasJoined) {
            hasJoined = false
            const last = refusal ?? (await asker.decide(cost, PEEK))
            if (isHopeless(last)) throw tooLong(last)
            const units = unitsOf(line.slice(0, line.indexOf(turn) + 1))
            const waitMs = await expectedWait(asker, last, id, units)
            if (waitMs > left()) throw tooLong(last, waitMs)
          } else {
            if (left() <= 0) throw tooLong(options.refusal)
            await this.#sleep(turn, left(), signal)
          }
          // What was said before others had their turn is stale.
          refusal = undefined
          continue
        }
        const other = asker.lines.find((line) => line !== id && this.#isLedBefore(line, turn))
        if (other !== undefined) {
          moveTo(other)
          continue
        }
        if (!refusal) askedAfter = this.#givenBack
        const verdict = refusal ?? (await asker.decide(cost, cost === 0 ? PEEK : CONSUME))
        refusal = undefined
        if (verdict.allowed) {
          if (!signal?.aborted && verdict.delayMs <= Math.max(0, left())) return verdict
          await asker.giveBack(verdict)
          throw signal?.aborted ? signal.reason : tooLong(verdict, verdict.delayMs)
        }
        // A refusal that was on its way when something was given back may know nothing of it.
        if (askedAfter !== this.#givenBack) continue
        const wait = foreseen(verdict)
        if (isHopeless(verdict) || wait > left() || left() <= 0) throw tooLong(verdict)
        const next = lineOf(asker, verdict)
        if (next !== undefined && next !== id) {
          refusal = verdict
          moveTo(next)
        } else await this.#sleep(turn, wait > 0 ? wait : Math.min(POLL_MS, Math.max(1, left())), signal)
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

  #isLedBefore(id: string, turn: Turn): boolean {
    const head = this.#lines.get(id)?.[0]
    return head !== undefined && head.since < turn.since
  }

  #join(id: string, turn: Turn): Turn[] {
    let line = this.#lines.get(id)
    if (!line) {
      line = []
      this.#lines.set(id, line)
    }
    line.splice(line.findLastIndex(({ since }) => since <= turn.since) + 1, 0, turn)
    return line
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

/** The line of the limit that refuses for longest; undefined for a block, which is no limit's. */
function lineOf({ lines }: Asker, { limits }: Verdict): string | undefined {
  const i = longestRefusal(limits)
  return i < 0 ? undefined : lines[i]
}

/** When the last of `units` in a line would be admitted if they were asked for one after the other, from now. */
async function expectedWait(asker: Asker, { limits }: Verdict, line: string, units: number): Promise<number> {
  let most = 0
  for (const [i, { algorithm, limit, windowMs, capacity, retryAfterMs = 0 }] of limits.entries()) {
    if (algorithm === 'concurrency' || limit === 0 || units === 0) continue
    if (asker.lines[i] !== line) {
      most = Math.max(most, retryAfterMs)
      continue
    }
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
