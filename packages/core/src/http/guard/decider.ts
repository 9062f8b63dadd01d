import type { DecisionOptions } from '../../limiter/options.js'
import type { PolicyChoice } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import { PEEK } from '../../store/store.js'
import { SluiceError } from '../../util/errors.js'
import { whenKnown } from '../../util/when-known.js'
import { Verdict } from '../../verdict/verdict.js'
import type { Charging } from '../charging/charging.js'
import type { RequestLimiter } from '../identity/request-limiter.js'
import type { RequestBans } from './bans.js'

const FRESH: DecisionOptions = Object.freeze({ fresh: true })
const UNSTRUCK: DecisionOptions = Object.freeze({ strikes: false })
const FRESH_UNSTRUCK: DecisionOptions = Object.freeze({ fresh: true, strikes: false })

type Asked = Verdict | undefined

/** Asks the limiter for verdicts on requests: with the bytes that they may send, and behind requests that already wait. */
export class Decider<Request> {
  readonly #where: string
  readonly #limiter: RequestLimiter<Request>
  readonly #charging: Charging<Request> | undefined
  readonly #queues: boolean
  readonly #fresh: boolean
  readonly #bans: RequestBans<Request> | undefined
  readonly #countsResponses: boolean

  /**
   * `queues`: whether requests wait for a turn. `fresh`: whether refusals that were remembered a moment ago do not count.
   */
  constructor(
    where: string,
    limiter: RequestLimiter<Request>,
    charging: Charging<Request> | undefined,
    queues: boolean,
    fresh: boolean,
    bans: RequestBans<Request> | undefined,
  ) {
    this.#where = where
    this.#limiter = limiter
    this.#charging = charging
    this.#queues = queues
    this.#fresh = fresh
    this.#bans = bans
    this.#countsResponses = limiter.limits.some(({ unit }) => unit === 'response-bytes')
  }

  /** Undefined where the request has no key and is not limited. `choice`: as `decideRequest` takes it. */
  decide(context: HttpContext<Request>, units: number, choice?: PolicyChoice<Request>): Asked | Promise<Asked> {
    // The limiter would take undefined, which a careless function returns, for its default.
    if (units === undefined)
      throw new SluiceError('INVALID_COST', `${this.#where}: cost: expected a whole number, got undefined`)
    const options = this.optionsFor(context)
    if (!this.#queues || units === 0 || !this.#limiter.hasQueues) {
      return this.#limiter.decideRequest(context, units, options, undefined, choice)
    }
    return whenKnown(this.#limiter.hasWaiters(context, choice), (hasWaiters) =>
      hasWaiters
        ? // Requests that wait are first: any room belongs to them.
          whenKnown(this.#limiter.decideRequest(context, units, options, PEEK, choice), behindWaiters)
        : this.#limiter.decideRequest(context, units, options, undefined, choice),
    )
  }

  optionsFor(context: HttpContext<Request>): DecisionOptions | undefined {
    const bytes = this.#charging?.bytesOf(context)
    const strikes = this.#bans === undefined || this.#bans.strikesAtOnce(context)
    if (this.#countsResponses) {
      // What is sent is charged when it is.
      return { ...(bytes !== undefined && { bytes }), responseBytes: 0, fresh: this.#fresh, strikes }
    }
    if (bytes !== undefined) return { bytes, fresh: this.#fresh, strikes }
    if (!strikes) return this.#fresh ? FRESH_UNSTRUCK : UNSTRUCK
    return this.#fresh ? FRESH : undefined
  }
}

/** What would be admitted by itself waits its turn behind the others. */
function behindWaiters(verdict: Verdict | undefined): Verdict | undefined {
  return verdict?.allowed ? Verdict.marked(verdict, { waitMs: 1 }) : verdict
}
