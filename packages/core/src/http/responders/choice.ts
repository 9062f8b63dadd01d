import { invalidPolicy } from '../../errors.js'
import type { Limit } from '../../limits/limit.js'
import type { Verdict } from '../../verdict.js'
import type { HttpContext } from '../context.js'
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
  readonly #own: Responder<Request>
  /** By limit. */
  readonly #chosen: readonly Responder<Request>[]
  readonly #all: readonly Responder<Request>[]

  /** @throws SluiceError `INVALID_POLICY` */
  constructor(where: string, own: Responder<Request>, limits: readonly Limit<Request>[]) {
    if (typeof own !== 'function') invalidPolicy(where, 'respond', 'a responder such as reject()', own)
    this.#own = own
    this.#chosen = limits.map(({ respond }) => respond ?? own)
    this.#all = [...new Set([own, ...this.#chosen])]
    this.linesUp = this.#all.some(({ linesUp }) => linesUp)
    this.hidesQuota = this.#all.some(({ hidesQuota }) => hidesQuota)
  }

  for({ limits }: Verdict): Responder<Request> {
    let longest = -1
    let chosen: Responder<Request> | undefined
    for (let i = 0; i < limits.length; i++) {
      const { allowed, retryAfterMs = Number.POSITIVE_INFINITY } = limits[i] as Verdict['limits'][number]
      if (allowed || retryAfterMs <= longest) continue
      longest = retryAfterMs
      chosen = this.#chosen[i]
    }
    // No limit refuses a request that only has others before it.
    return chosen ?? (limits.length > 0 ? this.#all.find(({ linesUp }) => linesUp) : undefined) ?? this.#own
  }

  admitted(context: HttpContext<Request>): void {
    for (const { onAdmitted } of this.#all) onAdmitted?.(context)
  }

  /** Milliseconds by which to put off a request that was just admitted. */
  slowness({ limits }: Verdict): number {
    return limits.reduce((most, report, i) => Math.max(most, this.#chosen[i]?.slowness?.(report) ?? 0), 0)
  }
}
