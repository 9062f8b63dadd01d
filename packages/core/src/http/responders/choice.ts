import type { Limit } from '../../policy/limits/limit.js'
import type { ReadablePlan } from '../../policy/plan.js'
import type { HttpContext } from '../../request/context.js'
import { propertyOf } from '../../util/property-of.js'
import { type LimitReport, longestRefusal } from '../../verdict/limit-report.js'
import type { RefusalReason } from '../../verdict/refusals.js'
import { DECISION, type Verdict } from '../../verdict/verdict.js'
import { fairClient } from './fair-client.js'
import { checkedResponder, checkedWithoutQueue, whenUnavailableOf } from './fallback.js'
import { type Responder, type ResponderTraits, traitsOf } from './responder.js'

/** Identifies the client of a request where no responder does. */
const clientByAddress = fairClient<unknown>('respond', undefined)

/**
 * The responders of one limiter: its own, and those of single limits. Where several limits refuse, the one with the longest
 * wait chooses, as no request passes before it has room again; never is longest, and the first written wins a tie. The
 * limiter's own responds to blocks. It also responds to bans and to list denials, unless these have one of their own.
 */
export class Responders<Request> {
  /** Whether refused requests wait in a queue, so that later ones queue behind them. */
  readonly queues: boolean
  /** Whether admitted requests get no quota headers: a reply without them would differ from the others. */
  readonly hidesQuota: boolean
  readonly deceives: boolean
  readonly degrades: boolean
  /** Whether each of them refuses at once: `reject` and `pass`, which alone need no other while the store is away. */
  readonly onlyRefuse: boolean
  readonly #slows: boolean
  readonly #own: Responder<Request>
  /** Used where a refusal has such a reason and no limit refuses. */
  readonly #byReason: Readonly<Partial<Record<RefusalReason, Responder<Request>>>>
  readonly #all: readonly Responder<Request>[]

  /**
   * `denied`, `banned`: the responders of requests that no limit has refused, where they differ from the limiter's own.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  constructor(
    where: string,
    own: Responder<Request>,
    limits: readonly Limit<Request>[],
    { denied = own, banned }: { readonly denied: unknown; readonly banned: unknown },
  ) {
    this.#own = checkedResponder(where, 'respond', own)
    const whenDenied = checkedResponder<Request>(where, 'deny.respond', denied)
    const whenBanned = banned === undefined ? own : checkedWithoutQueue<Request>(where, 'ban: respond', banned)
    this.#byReason = { denied: whenDenied, banned: whenBanned, unavailable: whenUnavailableOf(own) }
    this.#all = [...new Set([own, whenDenied, whenBanned, ...limits.flatMap(({ respond }) => respond ?? [])])]
    const traits = this.#all.map((each): ResponderTraits<Request> => traitsOf(each))
    this.queues = traits.some(({ queues }) => queues === true)
    this.onlyRefuse = this.#all.every((each, i) => traits[i]?.whenUnavailable === each)
    this.#slows = traits.some(({ slowness }) => slowness !== undefined)
    this.hidesQuota = traits.some(({ hidesQuota }) => hidesQuota === true)
    this.deceives = traits.some(({ deceives }) => deceives === true)
    this.degrades = traits.some(({ degrades }) => degrades === true)
  }

  for(verdict: Verdict): Responder<Request> {
    const byReason = verdict.reason && propertyOf(this.#byReason, verdict.reason)
    if (byReason) return byReason
    const i = longestRefusal(verdict.limits)
    if (i >= 0) return this.#of(verdict, i)
    // Where no limit refuses, the request only waits behind others.
    return (verdict.block ? undefined : this.#all.find((each) => propertyOf(each, 'queues'))) ?? this.#own
  }

  /** The delay of a request that was just admitted, in ms. */
  slowness(verdict: Verdict): number {
    let longest = 0
    for (let i = 0; this.#slows && i < verdict.limits.length; i++) {
      const report = verdict.limits[i] as LimitReport
      longest = Math.max(longest, propertyOf(this.#of(verdict, i), 'slowness')?.(report) ?? 0)
    }
    return longest
  }

  /** The client of a request that a queueing limit has admitted: clients take turns. */
  clientOf(context: HttpContext<Request>, verdict: Verdict): Promise<string | undefined> {
    for (let i = 0; i < verdict.limits.length; i++) {
      const client = propertyOf(this.#of(verdict, i), 'clientOf')?.(context, verdict)
      if (client) return client
    }
    return clientByAddress(context, verdict)
  }

  #of(verdict: Verdict, i: number): Responder<Request> {
    const { definitions } = verdict[DECISION].request.plan as ReadablePlan
    return (definitions[i]?.respond as Responder<Request> | undefined) ?? this.#own
  }
}
