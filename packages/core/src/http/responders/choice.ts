import type { Limit } from '../../policy/limits/limit.js'
import type { HttpContext } from '../../request/context.js'
import { invalidPolicy } from '../../util/errors.js'
import { warnOnRejection } from '../../util/warn-on-rejection.js'
import { type LimitReport, longestRefusal, Verdict } from '../../verdict/verdict.js'
import { whenUnavailableOf } from './fallback.js'
import type { Responder } from './responder.js'

/**
 * The responders of one limiter: its own, and those that single limits bring. Where several limits
 * refuse, the one that refuses for longest chooses, as nothing can be done before it has room again
 * (never is longest; of equals the first written); a block is the limiter's own.
 */
export class Responders<Request> {
  /** Whether requests wait in line, so that those that come later have to join. */
  readonly linesUp: boolean
  /** Whether admitted requests are told nothing: without fields among its replies, their absence would tell. */
  readonly hidesQuota: boolean
  readonly #slows: boolean
  readonly #own: Responder<Request>
  readonly #whenUnavailable: Responder<Request>
  readonly #all: readonly Responder<Request>[]

  /** @throws SluiceError `INVALID_POLICY` */
  constructor(where: string, own: Responder<Request>, limits: readonly Limit<Request>[]) {
    if (typeof own !== 'function') invalidPolicy(where, 'respond', 'a responder such as reject()', own)
    this.#own = own
    this.#whenUnavailable = whenUnavailableOf(own)
    this.#all = [...new Set([own, ...limits.flatMap(({ respond }) => respond ?? [])])]
    this.linesUp = this.#all.some(({ linesUp }) => linesUp === true)
    this.#slows = this.#all.some(({ slowness }) => slowness !== undefined)
    this.hidesQuota = this.#all.some(({ hidesQuota }) => hidesQuota === true)
  }

  for(verdict: Verdict): Responder<Request> {
    if (verdict.reason === 'unavailable') return this.#whenUnavailable
    const i = longestRefusal(verdict.limits)
    if (i >= 0) return this.#of(verdict, i)
    // No limit refuses a request that only has others before it.
    return (verdict.block ? undefined : this.#all.find(({ linesUp }) => linesUp)) ?? this.#own
  }

  admitted(context: HttpContext<Request>): void {
    for (const { onAdmitted } of this.#all) warnOnRejection('onAdmitted', onAdmitted?.(context))
  }

  /** Milliseconds by which to put off a request that was just admitted. */
  slowness(verdict: Verdict): number {
    let most = 0
    for (let i = 0; this.#slows && i < verdict.limits.length; i++) {
      const report = verdict.limits[i] as LimitReport
      most = Math.max(most, this.#of(verdict, i).slowness?.(report) ?? 0)
    }
    return most
  }

  #of(verdict: Verdict, i: number): Responder<Request> {
    return (Verdict.definitionsOf(verdict)[i]?.respond as Responder<Request> | undefined) ?? this.#own
  }
}
