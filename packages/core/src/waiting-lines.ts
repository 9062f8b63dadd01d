import { type Duration, durationMs } from './duration.js'
import { invalidPolicy, SluiceError } from './errors.js'
import type { Limiter } from './limiter.js'
import { knownOptions } from './limits/checks.js'
import { pause } from './pause.js'
import { PEEK } from './store.js'
import type { Verdict } from './verdict.js'

export interface AcquireOptions {
  /** Units: whole, 0 or more. @default 1 */
  readonly cost?: number
  /** Longest wait. @default no bound */
  readonly maxWait?: Duration
  /** Ends the wait; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** A place in flight frees up when its holder is done, which no clock foretells: look again this often. */
const POLL_MS = 50

interface Turn {
  readonly cost: number
  /** Resolved when everyone ahead has gone. */
  readonly ready: Promise<void>
  readonly go: () => void
}

/** The lines of callers that wait for one limiter, one line per key: first in, first out within this process. */
export class WaitingLines {
  readonly #lines = new Map<string, Turn[]>()
  readonly #wakers = new Set<() => void>()

  /** Something was given back: whoever sleeps at the head of a line looks again. */
  wake(): void {
    for (const wake of [...this.#wakers]) wake()
  }

  async acquire<Subject>(
    limiter: Limiter<Subject>,
    where: string,
    subject: Subject,
    identities: readonly string[],
    options: AcquireOptions,
  ): Promise<Verdict> {
    knownOptions(`${where}: acquire`, options, ['cost', 'maxWait', 'signal'])
    const { cost = 1, maxWait, signal } = options
    if (signal !== undefined && !(signal instanceof AbortSignal)) {
      invalidPolicy(where, 'signal', 'an AbortSignal', signal)
    }
    const maxWaitMs = maxWait === undefined ? Number.POSITIVE_INFINITY : durationMs(where, 'maxWait', maxWait)
    const deadline = performance.now() + maxWaitMs
    const left = () => deadline - performance.now()
    const tooLong = (verdict?: Verdict) =>
      new SluiceError('WAIT_EXCEEDED', `${where}: acquire: ${whyTooLong(verdict, maxWaitMs)}`)
    signal?.throwIfAborted()

    const id = identities.join('\n')
    const turn = this.#join(id, cost)
    try {
      const line = this.#lines.get(id) as Turn[]
      if (line[0] !== turn) {
        const alone = await limiter.decide(subject, undefined, cost, PEEK)
        if (alone.reason === 'impossible') throw tooLong(alone)
        const units = line.slice(0, line.indexOf(turn) + 1).reduce((sum, { cost }) => sum + cost, 0)
        if ((await expectedWait(limiter, subject, units)) > left()) throw tooLong()
        let isReady = false
        const whenReady = (wake: () => void) => {
          void turn.ready.then(() => {
            isReady = true
            wake()
          })
          return () => {}
        }
        while (!isReady) {
          if (left() <= 0) throw tooLong()
          await pause(left(), signal, whenReady)
        }
      }

      const verdict = await this.#admission(limiter, subject, cost, left, tooLong, signal)
      // A place in a queueing limit is taken: the next in line may take the next one.
      this.#leave(id, turn)
      if (verdict.delayMs > 0) {
        try {
          if (verdict.delayMs > left()) throw tooLong(verdict)
          await pause(verdict.delayMs, signal)
        } catch (error) {
          await limiter.giveBack(verdict)
          throw error
        }
      }
      return verdict
    } finally {
      this.#leave(id, turn)
    }
  }

  /** Asks until admitted, sleeping exactly as long as each refusal says. */
  async #admission<Subject>(
    limiter: Limiter<Subject>,
    subject: Subject,
    cost: number,
    left: () => number,
    tooLong: (verdict?: Verdict) => SluiceError,
    signal: AbortSignal | undefined,
  ): Promise<Verdict> {
    for (;;) {
      const verdict = await limiter.decide(subject, undefined, cost)
      if (verdict.allowed) {
        if (!signal?.aborted) return verdict
        await limiter.giveBack(verdict)
        throw signal.reason
      }
      const wait = foreseen(verdict)
      // Never is too long even for those who would wait for ever.
      if (verdict.reason === 'impossible' || wait > left()) throw tooLong(verdict)
      const wakers = this.#wakers
      await pause(wait > 0 ? wait : Math.min(POLL_MS, Math.max(1, left())), signal, (wake) => {
        wakers.add(wake)
        return () => wakers.delete(wake)
      })
      if (left() < 0) throw tooLong(verdict)
    }
  }

  #join(id: string, cost: number): Turn {
    let go = () => {}
    const ready = new Promise<void>((resolve) => {
      go = resolve
    })
    const turn = { cost, ready, go }
    const line = this.#lines.get(id)
    if (line) line.push(turn)
    else this.#lines.set(id, [turn])
    return turn
  }

  #leave(id: string, turn: Turn): void {
    const line = this.#lines.get(id)
    const place = line?.indexOf(turn) ?? -1
    if (!line || place < 0) return
    line.splice(place, 1)
    if (line.length === 0) this.#lines.delete(id)
    else line[0]?.go()
  }
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
async function expectedWait<Subject>(limiter: Limiter<Subject>, subject: Subject, units: number): Promise<number> {
  const now = await limiter.decide(subject, undefined, 0)
  let most = 0
  for (const { algorithm, limit, windowMs, capacity } of now.limits) {
    if (algorithm === 'concurrency' || limit === 0) continue
    // Every `capacity` units take the time in which that many come back; the rest is up to the present state.
    const rounds = Math.floor((units - 1) / capacity)
    const rest = units - rounds * capacity
    const first = await limiter.decide(subject, undefined, rest, PEEK)
    const wait = first.limits.find((report) => report.limit === limit && report.windowMs === windowMs)
    most = Math.max(most, (wait?.retryAfterMs ?? 0) + Math.ceil((rounds * capacity * windowMs) / limit))
  }
  return most
}

function whyTooLong(verdict: Verdict | undefined, maxWaitMs: number): string {
  if (verdict?.reason === 'impossible') return 'the cost is larger than a limit ever admits'
  return `the wait would exceed ${maxWaitMs} ms`
}
