import type { Limiter } from '../../limiter/limiter.js'
import { isOver, type RawResponse } from '../../request/context.js'
import { LONGEST_TIMER_MS } from '../../util/pause.js'
import { isThenable } from '../../util/thenable.js'
import type { Verdict } from '../../verdict/verdict.js'
import { handlerEnd } from '../response/handler-end.js'
import { cutShort, http2Stream, sentBytes } from '../response/sent-bytes.js'
import { wasAnsweredUnread } from './body.js'

/** Milliseconds. */
export interface PermitTimes {
  /** Shortest time for which a permit is held without being renewed. */
  readonly shortestTtlMs: number
  /** Longest such time, of limits that are decided together. */
  readonly longestTtlMs: number
  /** Longest time in which bytes of a response wait and none leave. */
  readonly maxHoldMs: number
}

/** Whether a handler whose result is there has done its work; if not, only its answer tells. */
type IsDone = (result: unknown) => boolean | Promise<boolean>

/** The permits that one verdict took for one response. */
interface Held {
  readonly permits: Permits
  readonly verdict: Verdict
  readonly response: RawResponse
  readonly over: () => void
  /** The client has left before the response began: held until the handler is done, but not renewed. */
  hasLeft: boolean
  /** The handler has answered after that. */
  hasAnswered: boolean
  /** What the handler returned, where the framework shows it. */
  result: PromiseLike<unknown> | undefined
  isDone: IsDone | undefined
  /** Ticks since the client has left, or since bytes have waited and none have left. */
  ticks: number
  sent: number | undefined
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
    const held: Held = {
      permits: this,
      verdict,
      response,
      over: () => this.#over(held),
      hasLeft: false,
      hasAnswered: false,
      result: undefined,
      isDone: undefined,
      ticks: 0,
      sent: undefined,
    }
    this.#held.add(held)
    this.#timer ??= setInterval(() => this.tick(), this.#tickMs).unref()
    const others = heldBy.get(response)
    if (others) others.push(held)
    else heldBy.set(response, [held])
    if (isOver(response)) {
      this.#over(held)
      return
    }
    // A response that is sent emits both, one that is cut off only `close`.
    response.on('finish', held.over)
    response.on('close', held.over)
    // Over HTTP/2 those wait for the end of the request, which a client may keep open.
    http2Stream(response)?.on('finish', held.over)
  }

  /** @internal Every `ttl / 3`, while permits are held. */
  tick(): void {
    for (const held of this.#held) {
      if (held.hasLeft) {
        if (++held.ticks >= this.#ticksToLapse) this.#forget(held)
        continue
      }
      this.#limiter.renew(held.verdict).catch(lapses)
      if (this.#isStalled(held)) cutShort(held.response)
    }
  }

  async release(held: Held): Promise<void> {
    if (this.#forget(held)) await this.#limiter.release(held.verdict).catch(lapses)
  }

  /** Hears what the handler returned, which for a client that has left is what tells when it is done. */
  handledBy(held: Held, result: PromiseLike<unknown>, isDone: IsDone | undefined): void {
    held.result = result
    held.isDone = isDone
    if (held.hasLeft) this.#awaitResult(held)
  }

  #over(held: Held): void {
    this.#ignore(held)
    if (hasBegun(held.response)) void this.release(held)
    else this.#awaitHandler(held)
  }

  #awaitHandler(held: Held): void {
    held.hasLeft = true
    held.ticks = 0
    handlerEnd(held.response).then(() => {
      held.hasAnswered = true
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
        if (done || held.hasAnswered) void this.release(held)
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
    this.#ignore(held)
    if (this.#held.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    return true
  }

  #ignore({ response, over }: Held): void {
    response.removeListener('finish', over)
    response.removeListener('close', over)
    http2Stream(response)?.removeListener('finish', over)
  }
}

/**
 * Releases every permit of `concurrency` limits that a request holds, given its raw response: for a handler that has
 * stopped its work because the client has left, or that needs no permit for the rest of it. Does nothing where
 * none is held. Resolves when the stores know; permits that a store cannot be told of lapse after their `ttl`.
 *
 * @example Express: `releasePermits(res)`, Koa: `releasePermits(ctx.res)`, Fastify: `releasePermits(reply.raw)`
 */
export async function releasePermits(response: RawResponse): Promise<void> {
  await Promise.all((heldBy.get(response) ?? []).map((held) => held.permits.release(held)))
}

/**
 * Tells the permits of a response what its handler returned: if the client leaves before the response begins, they are
 * held until that promise has settled. `isDone` may say that the handler is not done then, so that its answer is waited
 * for. `verdict`: the one that took the permits; without it, all permits of the response.
 */
export function handledBy(response: RawResponse, result: unknown, isDone?: IsDone, verdict?: Verdict): void {
  if (!isThenable(result)) return
  for (const held of heldBy.get(response) ?? []) {
    if (verdict === undefined || held.verdict === verdict) held.permits.handledBy(held, result, isDone)
  }
}

/** Whether the handler has begun to answer: not where a 413 was sent in its place, of which it may know nothing. */
function hasBegun(response: RawResponse): boolean {
  return response.headersSent === true && !wasAnsweredUnread(response)
}

/** A permit that the store cannot be told about lapses by itself after its `ttl`. */
function lapses(): void {}
