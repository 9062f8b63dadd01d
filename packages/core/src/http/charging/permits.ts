import type { Limiter } from '../../limiter/limiter.js'
import { isOver, type RawResponse } from '../../request/context.js'
import { arePermits } from '../../store/units.js'
import { durationMs } from '../../util/duration.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { outsideRequests } from '../../util/outside-requests.js'
import { LONGEST_TIMER_MS } from '../../util/pause.js'
import { isThenable } from '../../util/thenable.js'
import { PROCESS_TIMING, type Timer, type Timing } from '../../util/timing.js'
import { PARTS, type Verdict } from '../../verdict/verdict.js'
import { noteHeld } from '../headers/sent-wait.js'
import { watchHandler } from '../response/handler-end.js'
import { wasRejectedUnread } from '../response/rejected-unread.js'
import { abortResponse, http2Stream, sentBytes } from '../response/sent-bytes.js'
import { listenTo } from '../response/shared-listener.js'
import { upgradeOf } from '../response/upgrade.js'
import { whenOver } from '../response/when-over.js'

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
}

/** Whether the result of a handler shows that it is done. If not, it is done when it sends the response. */
type IsDone = (result: unknown) => boolean | Promise<boolean>

/** The permits that one verdict took for one request. */
class HeldPermits {
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
}

/**
 * Returns the holder of permits of a limiter's `concurrency` limits; undefined where it has none.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function permitsFor<Request>(where: string, limiter: Limiter<Request>, timing: Timing): Permits | undefined {
  const limits = limiter.limits.filter(({ unit }) => arePermits(unit))
  if (limits.length === 0) return undefined
  const ttls = limits.map(({ window }) => Number(window))
  // Checked again: a copy of a limit may have been changed.
  const maxHolds = limits.map(({ maxHold }) => durationMs(where, 'maxHold', maxHold))
  return new Permits(limiter, {
    shortestTtlMs: Math.min(...ttls),
    longestTtlMs: Math.max(...ttls),
    maxHoldMs: Math.min(...maxHolds),
    timing,
  })
}

const heldBy = new WeakMap<RawResponse, HeldPermits[]>()

/**
 * The permits of `concurrency` limits that requests of one guard hold. Each is released once: when a response that has begun is
 * finished or its connection closes, else when the handler is done. They are renewed while the client is connected, and lapse
 * by themselves after that.
 */
export class Permits {
  readonly #limiter: Pick<Limiter, 'release' | 'renew'>
  readonly #tickMs: number
  readonly #ticksToLapse: number
  readonly #ticksToStall: number
  readonly #held = new Set<HeldPermits>()
  #timer: Timer | undefined
  readonly #timing: Timing

  constructor(
    limiter: Pick<Limiter, 'release' | 'renew'>,
    { shortestTtlMs, longestTtlMs, maxHoldMs, timing = PROCESS_TIMING }: PermitTimes,
  ) {
    this.#timing = timing
    this.#limiter = limiter
    this.#tickMs = Math.min(Math.max(1, Math.floor(shortestTtlMs / 3)), LONGEST_TIMER_MS)
    // The first tick may follow at once after the start of its interval.
    this.#ticksToLapse = Math.ceil(longestTtlMs / this.#tickMs) + 1
    this.#ticksToStall = Math.ceil(maxHoldMs / this.#tickMs)
  }

  hold(verdict: Verdict, response: RawResponse): void {
    const held = new HeldPermits(this, verdict, response, this.#timing.now())
    this.#held.add(held)
    this.#timer ??= outsideRequests(() => this.#timing.setInterval(() => this.tick(), this.#tickMs).unref())
    getOrInsert(heldBy, response, () => []).push(held)
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

  async release(held: HeldPermits): Promise<void> {
    if (!this.#forget(held)) return
    noteHeld(held.verdict, this.#timing.now() - held.sinceMs)
    await this.#limiter.release(held.verdict).catch(ignoreFailure)
  }

  /** Takes the handler's result. If the client leaves, that shows when the handler is done. */
  holdUntil(held: HeldPermits, result: PromiseLike<unknown>, isDone: IsDone | undefined): void {
    held.result = result
    held.isDone = isDone
    if (held.hasLeft) this.#awaitResult(held)
  }

  #over(held: HeldPermits): void {
    held.ignore()
    if (hasBegun(held.response)) void this.release(held)
    else this.#awaitHandler(held)
  }

  #awaitHandler(held: HeldPermits): void {
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

  #awaitResult(held: HeldPermits): void {
    const { isDone = () => true } = held
    Promise.resolve(held.result)
      .then(isDone, () => true)
      .then((done) => {
        held.result = undefined
        if (done || held.hasResponded) void this.release(held)
      })
  }

  #isStalled(held: HeldPermits): boolean {
    const sent = sentBytes(held.response)
    // Counted in ticks and not by a clock: a suspended process sent nothing meanwhile.
    if (sent !== undefined && sent === held.sent) return ++held.ticks >= this.#ticksToStall
    held.sent = sent
    held.ticks = 0
    return false
  }

  #forget(held: HeldPermits): boolean {
    if (!this.#held.delete(held)) return false
    held.ignore()
    if (this.#held.size === 0) {
      this.#timing.clearInterval(this.#timer)
      this.#timer = undefined
    }
    return true
  }
}

/**
 * Releases every permit of `concurrency` limits that a request holds. For a handler that has stopped its work because the
 * client has left, or that needs no permit for the rest of it. Takes the raw response. Does nothing where no permit is held.
 * Resolves when the stores have released the permits; while a store is away, they lapse after their `ttl`.
 *
 * @example Express: `releasePermits(res)`, Koa: `releasePermits(ctx.res)`, Fastify: `releasePermits(reply.raw)`
 */
export async function releasePermits(response: RawResponse): Promise<void> {
  await Promise.all((heldBy.get(response) ?? []).map((held) => held.permits.release(held)))
}

/**
 * Holds the permits of a request until the promise that its handler returned is settled, if the client leaves before
 * the response begins. If `isDone` returns false then, they are held until the handler sends the response.
 * `verdict`: the one that took the permits; without it, all permits of the request.
 */
export function holdPermitsUntil(response: RawResponse, result: unknown, isDone?: IsDone, verdict?: Verdict): void {
  if (!isThenable(result)) return
  for (const held of heldBy.get(response) ?? []) {
    if (verdict === undefined || verdict[PARTS].includes(held.verdict)) held.permits.holdUntil(held, result, isDone)
  }
}

/** Whether the handler has begun to respond. Not where a 413 was sent in its place, which it may not notice. */
function hasBegun(response: RawResponse): boolean {
  if (upgradeOf(response)?.isAnswered) return true
  return response.headersSent === true && !wasRejectedUnread(response)
}

/** While the store is away, a permit lapses after its `ttl`. */
function ignoreFailure(): void {}
