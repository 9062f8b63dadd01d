import type { Limiter } from '../../limiter/limiter.js'
import { isOver, type RawResponse } from '../../request/context.js'
import { hasPermits } from '../../store/cell-kinds.js'
import { durationMs } from '../../util/duration.js'
import { LONGEST_TIMER_MS } from '../../util/pause.js'
import { isThenable } from '../../util/thenable.js'
import type { Verdict } from '../../verdict/verdict.js'
import { handlerEnd } from '../response/handler-end.js'
import { abortResponse, http2Stream, sentBytes } from '../response/sent-bytes.js'
import { listenTo } from '../response/shared-listener.js'
import { whenOver } from '../response/when-over.js'
import { wasRejectedUnread } from './body.js'

/** Milliseconds. */
export interface PermitTimes {
  /** Shortest time for which a permit is held without being renewed. */
  readonly shortestTtlMs: number
  /** Longest such time, of limits that are decided together. */
  readonly longestTtlMs: number
  /** Longest time in which bytes of a response wait and none leave. */
  readonly maxHoldMs: number
}

/** Whether a handler that has returned this is done; if not, it is done when it sends the response. */
type IsDone = (result: unknown) => boolean | Promise<boolean>

/** The permits that one verdict took for one request. */
class Held {
  readonly permits: Permits
  readonly verdict: Verdict
  readonly response: RawResponse
  /** Whether the client left before the response began: then held until the handler is done, but not renewed. */
  hasLeft = false
  /** Whether the handler has sent a response after that. */
  hasResponded = false
  /** What the handler returned, where the framework shows it. */
  result: PromiseLike<unknown> | undefined
  isDone: IsDone | undefined
  /** Ticks since the client has left, or since bytes have waited and none have left. */
  ticks = 0
  sent: number | undefined

  constructor(permits: Permits, verdict: Verdict, response: RawResponse) {
    this.permits = permits
    this.verdict = verdict
    this.response = response
  }

  /** Stops listening for the end of the response. */
  ignore = () => {}
}

/**
 * What holds the permits of a limiter's `concurrency` limits; undefined where it has none.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function permitsFor<Request>(where: string, limiter: Limiter<Request>): Permits | undefined {
  const limits = limiter.limits.filter(({ algorithm }) => hasPermits(algorithm))
  if (limits.length === 0) return undefined
  const ttls = limits.map(({ window }) => Number(window))
  // Checked again: a copy of a limit may have something changed.
  const maxHolds = limits.map(({ maxHold }) => durationMs(where, 'maxHold', maxHold))
  return new Permits(limiter, {
    shortestTtlMs: Math.min(...ttls),
    longestTtlMs: Math.max(...ttls),
    maxHoldMs: Math.min(...maxHolds),
  })
}

const heldBy = new WeakMap<RawResponse, Held[]>()

/**
 * The permits of `concurrency` limits that requests of one guard hold, each released once: when a response that has
 * begun is finished or its connection closes, else when the handler is seen to be done. They are renewed for as
 * long as the client is there, and lapse by themselves after that.
 */
export class Permits {
  readonly #limiter: Pick<Limiter, 'release' | 'renew'>
  readonly #tickMs: number
  readonly #ticksToLapse: number
  readonly #ticksToStall: number
  readonly #held = new Set<Held>()
  #timer: NodeJS.Timeout | undefined

  constructor(limiter: Pick<Limiter, 'release' | 'renew'>, { shortestTtlMs, longestTtlMs, maxHoldMs }: PermitTimes) {
    this.#limiter = limiter
    this.#tickMs = Math.min(Math.max(1, Math.floor(shortestTtlMs / 3)), LONGEST_TIMER_MS)
    // The first tick may come right after what it is counted from.
    this.#ticksToLapse = Math.ceil(longestTtlMs / this.#tickMs) + 1
    this.#ticksToStall = Math.ceil(maxHoldMs / this.#tickMs)
  }

  hold(verdict: Verdict, response: RawResponse): void {
    const held = new Held(this, verdict, response)
    this.#held.add(held)
    this.#timer ??= setInterval(() => this.tick(), this.#tickMs).unref()
    const others = heldBy.get(response)
    if (others) others.push(held)
    else heldBy.set(response, [held])
    const over = () => this.#over(held)
    const stream = isOver(response) ? undefined : http2Stream(response)
    // Over HTTP/2 the end of a response waits for that of the request, which a client may keep open.
    const ignoreStream = stream && listenTo(stream, 'finish', over)
    const ignoreOver = whenOver(response, over)
    held.ignore = () => {
      ignoreStream?.()
      ignoreOver()
    }
  }

  /** @internal Every `ttl / 3`, while permits are held. */
  tick(): void {
    for (const held of this.#held) {
      if (held.hasLeft) {
        if (++held.ticks >= this.#ticksToLapse) this.#forget(held)
        continue
      }
      this.#limiter.renew(held.verdict).catch(ignoreFailure)
      if (this.#isStalled(held)) abortResponse(held.response)
    }
  }

  async release(held: Held): Promise<void> {
    if (this.#forget(held)) await this.#limiter.release(held.verdict).catch(ignoreFailure)
  }

  /** Where the client has left, what the handler returned shows when it is done. */
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
    handlerEnd(held.response).then(() => {
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
    // Counted in ticks and not by a clock: a process that was suspended has sent nothing meanwhile.
    if (sent !== undefined && sent === held.sent) return ++held.ticks >= this.#ticksToStall
    held.sent = sent
    held.ticks = 0
    return false
  }

  #forget(held: Held): boolean {
    if (!this.#held.delete(held)) return false
    held.ignore()
    if (this.#held.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    return true
  }
}

/**
 * Releases every permit of `concurrency` limits that a request holds, given its raw response: for a handler that has
 * stopped its work because the client has left, or that needs no permit for the rest of it. Does nothing where
 * none is held. Resolves when the stores have released them; while a store is away, they lapse after their `ttl`.
 *
 * @example Express: `releasePermits(res)`, Koa: `releasePermits(ctx.res)`, Fastify: `releasePermits(reply.raw)`
 */
export async function releasePermits(response: RawResponse): Promise<void> {
  await Promise.all((heldBy.get(response) ?? []).map((held) => held.permits.release(held)))
}

/**
 * Holds the permits of a request until the promise that its handler returned has settled, if the client leaves before
 * the response begins. If `isDone` says that the handler is not done then, they are held until it sends the response.
 * `verdict`: the one that took the permits; without it, all permits of the request.
 */
export function holdPermitsUntil(response: RawResponse, result: unknown, isDone?: IsDone, verdict?: Verdict): void {
  if (!isThenable(result)) return
  for (const held of heldBy.get(response) ?? []) {
    if (verdict === undefined || held.verdict === verdict) held.permits.holdUntil(held, result, isDone)
  }
}

/** Whether the handler has begun to respond: not where a 413 was sent in its place, which it may not notice. */
function hasBegun(response: RawResponse): boolean {
  return response.headersSent === true && !wasRejectedUnread(response)
}

/** While the store is away, a permit lapses after its `ttl`. */
function ignoreFailure(): void {}
