import { isOver, type RawResponse } from '../../request/context.js'
import { durationMs } from '../../util/duration.js'
import { outsideRequests } from '../../util/outside-requests.js'
import { LONGEST_TIMER_MS } from '../../util/pause.js'
import { PROCESS_TIMING, type Timer, type Timing } from '../../util/timing.js'
import type { Verdict } from '../../verdict/verdict.js'
import { watchHandler } from '../response/handler-end.js'
import { wasRejectedUnread } from '../response/rejected-unread.js'
import { abortResponse, http2Stream, sentBytes } from '../response/sent-bytes.js'
import { listenTo } from '../response/shared-listener.js'
import { upgradeOf } from '../response/upgrade.js'
import { whenOver } from '../response/when-over.js'
import {
  type HeldPermits,
  type HoldPermits,
  type IsDone,
  PERMIT_NOTES,
  type PermitHolder,
  type PermitLimiter,
  type PermitNotes,
} from './permit-holder.js'

/** Times in milliseconds. */
export interface PermitTimes {
  /** Shortest `ttl`: the time that a permit is held without renewal. */
  readonly shortestTtlMs: number
  /** Longest `ttl` of limits that are decided together. */
  readonly longestTtlMs: number
  /** Maximum time in which bytes of a response wait and none leave. */
  readonly maxHoldMs: number
  /** Of renewals. @default that of the process */
  readonly timing?: Timing
  /** @default those of this copy of the core */
  readonly notes?: PermitNotes
}

/** The permits that one verdict took for one request. */
class Held implements HeldPermits {
  readonly permits: Permits
  readonly verdict: Verdict
  readonly response: RawResponse
  readonly sinceMs: number
  /** Whether the client left before the response began: the permits are held until the handler is done, without renewal. */
  hasLeft = false
  /** Whether the handler has sent a response after that. */
  hasResponded = false
  /** The handler's return value, where the framework shows it. */
  result: PromiseLike<unknown> | undefined
  isDone: IsDone | undefined
  /** Ticks since the client left, or since waiting bytes stopped leaving. */
  ticks = 0
  sent: number | undefined

  constructor(permits: Permits, verdict: Verdict, response: RawResponse, sinceMs: number) {
    this.permits = permits
    this.sinceMs = sinceMs
    this.verdict = verdict
    this.response = response
  }

  /** Removes the listeners for the end of the response. */
  ignore = () => {}

  release(): Promise<void> {
    return this.permits.release(this)
  }

  holdUntil(result: PromiseLike<unknown>, isDone: IsDone | undefined): void {
    this.permits.holdUntil(this, result, isDone)
  }
}

/** Makes the holder of the permits that limits of one limiter count. */
export const holdPermits: HoldPermits = (where, limits, limiter, timing, notes) => {
  const ttls = limits.map(({ window }) => Number(window))
  // Checked again: a copy of a limit may have been changed.
  const maxHolds = limits.map(({ maxHold }) => durationMs(where, 'maxHold', maxHold))
  return new Permits(limiter, {
    shortestTtlMs: Math.min(...ttls),
    longestTtlMs: Math.max(...ttls),
    maxHoldMs: Math.min(...maxHolds),
    timing,
    notes,
  })
}

/**
 * The permits of `concurrency` limits that requests of one guard hold. Each is released once: when a response that has begun is
 * finished or its connection closes, else when the handler is done. They are renewed while the client is connected, and lapse
 * by themselves after that.
 */
export class Permits implements PermitHolder {
  readonly #limiter: PermitLimiter
  readonly #tickMs: number
  readonly #ticksToLapse: number
  readonly #ticksToStall: number
  readonly #held = new Set<Held>()
  #timer: Timer | undefined
  readonly #timing: Timing
  readonly #notes: PermitNotes

  constructor(
    limiter: PermitLimiter,
    { shortestTtlMs, longestTtlMs, maxHoldMs, timing = PROCESS_TIMING, notes = PERMIT_NOTES }: PermitTimes,
  ) {
    this.#timing = timing
    this.#notes = notes
    this.#limiter = limiter
    this.#tickMs = Math.min(Math.max(1, Math.floor(shortestTtlMs / 3)), LONGEST_TIMER_MS)
    // The first tick may follow at once after the start of its interval.
    this.#ticksToLapse = Math.ceil(longestTtlMs / this.#tickMs) + 1
    this.#ticksToStall = Math.ceil(maxHoldMs / this.#tickMs)
  }

  hold(verdict: Verdict, response: RawResponse): void {
    const held = new Held(this, verdict, response, this.#timing.now())
    this.#held.add(held)
    this.#timer ??= outsideRequests(() => this.#timing.setInterval(() => this.tick(), this.#tickMs).unref())
    this.#notes.holding(response, held)
    watchHandler(response)
    // Watched before the handler accepts it.
    upgradeOf(response)
    const over = () => this.#over(held)
    const stream = isOver(response) ? undefined : http2Stream(response)
    // Over HTTP/2 a response ends only after its request, which a client may hold open.
    const ignoreStream = stream && listenTo(stream, 'finish', over)
    const ignoreOver = whenOver(response, over)
    held.ignore = () => {
      ignoreStream?.()
      ignoreOver()
    }
  }

  /** @internal Runs every `ttl / 3`, while permits are held. */
  tick(): void {
    for (const held of this.#held) {
      if (held.hasLeft) {
        if (++held.ticks >= this.#ticksToLapse) this.#forget(held)
        continue
      }
      // Node closes some streams of HTTP/2 without an event, where their session ends during a write.
      if (isOver(held.response)) {
        this.#over(held)
        continue
      }
      this.#limiter.renew(held.verdict).catch(ignoreFailure)
      if (this.#isStalled(held)) abortResponse(held.response)
    }
  }

  async release(held: Held): Promise<void> {
    if (!this.#forget(held)) return
    this.#notes.heldFor(held.verdict, this.#timing.now() - held.sinceMs)
    await this.#limiter.release(held.verdict).catch(ignoreFailure)
  }

  /** Takes the handler's result. If the client leaves, that shows when the handler is done. */
  holdUntil(held: Held, result: PromiseLike<unknown>, isDone: IsDone | undefined): void {
    held.result = result
    held.isDone = isDone
    if (held.hasLeft) this.#awaitResult(held)
  }

  #over(held: Held): void {
    held.ignore()
    if (hasBegun(held.response)) void this.release(held)
    else this.#awaitHandler(held)
  }

  #awaitHandler(held: Held): void {
    held.hasLeft = true
    held.ticks = 0
    watchHandler(held.response)
      .done()
      .then(() => {
        held.hasResponded = true
        if (!held.result) void this.release(held)
      })
    if (held.result) this.#awaitResult(held)
  }

  #awaitResult(held: Held): void {
    const { isDone = () => true } = held
    Promise.resolve(held.result)
      .then(isDone, () => true)
      .then((done) => {
        held.result = undefined
        if (done || held.hasResponded) void this.release(held)
      })
  }

  #isStalled(held: Held): boolean {
    const sent = sentBytes(held.response)
    // Counted in ticks and not by a clock: a suspended process sent nothing meanwhile.
    if (sent !== undefined && sent === held.sent) return ++held.ticks >= this.#ticksToStall
    held.sent = sent
    held.ticks = 0
    return false
  }

  #forget(held: Held): boolean {
    if (!this.#held.delete(held)) return false
    held.ignore()
    if (this.#held.size === 0) {
      this.#timing.clearInterval(this.#timer)
      this.#timer = undefined
    }
    return true
  }
}

/** Whether the handler has begun to respond. Not where a 413 was sent in its place, which it may not notice. */
function hasBegun(response: RawResponse): boolean {
  if (upgradeOf(response)?.isAnswered) return true
  return response.headersSent === true && !wasRejectedUnread(response)
}

/** While the store is away, a permit lapses after its `ttl`. */
function ignoreFailure(): void {}
