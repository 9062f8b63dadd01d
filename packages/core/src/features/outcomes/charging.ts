import type { IncomingMessage } from 'node:http'
import type { Reply } from '../../http/responders/responder.js'
import { isDisabled } from '../../http/response/disabled-response.js'
import { sentStatus, whenDecided } from '../../http/response/upgrade.js'
import type { Engine } from '../../limiter/engine.js'
import type { HttpContext } from '../../request/context.js'
import { CHARGE } from '../../store/store.js'
import { invalidPolicy, neverBeside } from '../../util/errors.js'
import type { LimiterWarning, Warnings } from '../../util/warnings.js'
import { isCharged } from '../../verdict/decision.js'
import { DECISION, type Verdict } from '../../verdict/verdict.js'
import {
  announcedLength,
  BodyMeter,
  type BodyOptions,
  bodyFor,
  lengthRequiredReply,
  rejectBody,
  tooLargeReply,
} from '../bodies/body.js'
import { type CheckedCount, type CountFunction, type CountOptions, countFor } from './counting.js'
import { Outcomes } from './outcomes.js'

/** Options for charging a request by its outcome and its body. */
export interface ChargingOptions<Request> {
  /**
   * The requests that count, by the status of their response, such as `{ only: 'failure' }`.
   *
   * Every request is charged first, so that parallel requests cannot slip through. One that does not count is refunded after the
   * response; meanwhile requests that find no room wait for it. A connection that ends without a response counts.
   *
   * A function is called for every status that is sent, another limiter's refusal included, with the verdict and
   * `{ request, response }`. It has to return at once.
   * @default all count
   */
  readonly count?: CountOptions<Request>
  /** The bound of a request's body: `{ max: 100_000 }`. Required with limits of `content-bytes`. @default none */
  readonly body?: BodyOptions
}

/**
 * Returns charging by outcome and by body: a request is charged first, and refunded or settled when its outcome and its body
 * are known. Undefined if requests count by neither.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function chargingFor<Request>(
  where: string,
  options: ChargingOptions<Request>,
  engine: Engine<Request>,
  warnings: Warnings<LimiterWarning>,
): Charging<Request> | undefined {
  const count = countFor(where, options.count, warnings)
  // A request that waits for the outcomes of others is decided again and again: each refusal would be charged.
  if (count && engine.policy.all.some(({ consume }) => consume === CHARGE)) {
    neverBeside(where, 'count', 'onDeny: "charge"', options.count)
  }
  const body = bodyFor(where, options.body)
  const countsBytes = engine.policy.limits.some(({ unit }) => unit === 'content-bytes')
  if (countsBytes && !body) {
    invalidPolicy(
      where,
      'body',
      '{ max }, the bytes of a request of unknown length, as a limit counts bytes',
      undefined,
    )
  }
  if (!count && !body) return undefined
  const outcomes = Outcomes.of(engine.store, engine.policy.name, engine.timing)
  return new Charging({ engine, outcomes, count, body, countsBytes })
}

interface ChargingParts<Request> {
  readonly engine: Engine<Request>
  readonly outcomes: Outcomes
  /** Undefined if all requests count. */
  readonly count: CheckedCount | undefined
  readonly body: Required<BodyOptions> | undefined
  /** Whether a limit counts bytes of bodies. */
  readonly countsBytes: boolean
}

export class Charging<Request> {
  readonly #by: ChargingParts<Request>

  constructor(by: ChargingParts<Request>) {
    this.#by = by
  }

  /** The bytes that a body may have. Undefined without a bound. */
  get maxBody(): number | undefined {
    return this.#by.body?.max
  }

  /** The reply to a request whose announced body is too large, or that lacks a required length. Otherwise meters the body. */
  receive(context: HttpContext<Request>): Reply | undefined {
    const raw = rawRequest(context)
    const { body, countsBytes } = this.#by
    if (!raw || !body) return undefined
    const { max, requireLength } = body
    const length = announcedLength(raw)
    if (length !== undefined && length > max) return tooLargeReply(raw, max)
    if (length === undefined && requireLength) return lengthRequiredReply(raw)
    // Node rejects a body that is longer than announced.
    if (length === undefined) BodyMeter.of(raw).limitTo(max, () => rejectBody(context, raw, max))
    else if (length > 0 && countsBytes) BodyMeter.of(raw)
    return undefined
  }

  /** The bytes to reserve for a request: its announced length, or the maximum. Undefined if no limit counts bytes. */
  bytesOf(context: HttpContext<Request>): number | undefined {
    if (!this.#by.countsBytes) return undefined
    const raw = rawRequest(context)
    return raw ? (announcedLength(raw) ?? this.#by.body?.max) : 0
  }

  /** Decides a refusal again when the outcomes of other requests are known. Undefined if they cannot change it. */
  reconsider(
    context: HttpContext<Request>,
    refusal: Verdict,
    again: () => Verdict | Promise<Verdict>,
    isShared: boolean,
  ): Promise<Verdict | undefined> | undefined {
    const { count, outcomes } = this.#by
    if (!count || !outcomes.mayChange(refusal, isShared)) return undefined
    return outcomes.wait(refusal, again, context.response, count.withinMs, isShared)
  }

  /** Refunds or settles an admitted request, once, when its outcome and its body are known. */
  applyOutcomeLater(context: HttpContext<Request>, verdict: Verdict): void {
    const decision = verdict[DECISION]
    if (!isCharged(decision)) return
    const { engine, outcomes, count, countsBytes } = this.#by
    const { charges } = engine
    const close = count && outcomes.open(verdict)
    const raw = countsBytes ? rawRequest(context) : undefined
    const ofBody = raw && BodyMeter.of(raw)
    // Where the body was read before this limiter ran, the announced or reserved bytes stay charged.
    const meter = ofBody?.sawAll ? ofBody : undefined

    const apply = async (counts: boolean) => {
      try {
        if (!counts) await charges.refund(decision)
        else if (meter) await charges.settleBytes(decision, meter.received)
      } catch {
        // The store is away: the reservation stays charged.
      } finally {
        close?.()
      }
    }
    const applyAfterBody = () => (meter ? meter.whenEnded(() => void apply(true)) : void apply(true))
    if (count) {
      whenDecided(context.response, () =>
        outcome(count.counts, context, verdict) ? applyAfterBody() : void apply(false),
      )
    } else if (meter) applyAfterBody()
  }
}

/**
 * Whether a request counts. One that ended without a response of its handler counts. Otherwise a client could avoid the charge
 * when it hangs up first, or sends too large a body while the handler works.
 */
function outcome<Request>(count: CountFunction, context: HttpContext<Request>, verdict: Verdict): boolean {
  const { response } = context
  const status = sentStatus(response)
  return status === undefined || isDisabled(response) || count(status, verdict, context)
}

/** The raw request behind a context. */
function rawRequest({ response }: Pick<HttpContext, 'response'>): IncomingMessage | undefined {
  return response.req as IncomingMessage | undefined
}
