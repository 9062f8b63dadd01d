import type { ServerResponse } from 'node:http'
import type { Responders } from '../../http/responders/choice.js'
import { addGate, type Gate } from '../../http/response/gated-response.js'
import { abortResponse } from '../../http/response/sent-bytes.js'
import type { Engine } from '../../limiter/engine.js'
import { type HttpContext, isOver } from '../../request/context.js'
import { invalidPolicy, SluiceError } from '../../util/errors.js'
import { propertyOf } from '../../util/property-of.js'
import type { Timer } from '../../util/timing.js'
import { oneOf } from '../../util/validate.js'
import { DECISION, isBarred, served, type Verdict } from '../../verdict/verdict.js'
import { StepCharges } from '../meters/step-charges.js'

/** Maximum of bytes of a response that are sent before the limit has confirmed room for them. */
const STEP_BYTES = 64 * 1024
/** Maximum time until sent bytes are charged. */
const CHARGE_EVERY_MS = 1000

/** The treatment of a response that uses up a quota of its bytes. */
export type OnExhausted = 'cut' | 'finish'

export interface ResponseBytesOptions {
  /**
   * The end of a response that uses up a limit of `response-bytes`: `'cut'` or `'finish'`.
   *
   * Responders that slow it down or let it continue (`throttle`, `degrade`) go before. `'cut'` ends its connection
   * (over HTTP/2 its stream) after 64 kB more at most; no client takes that for the end of the body. `'finish'` sends
   * all of it, beyond the quota.
   * @default 'cut'
   */
  readonly onExhausted?: OnExhausted
}

/**
 * Returns the charging of response bodies; undefined if no limit counts them.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function responseBytesFor<Request>(
  where: string,
  { onExhausted, count }: ResponseBytesOptions & { readonly count?: unknown },
  engine: Engine<Request>,
  responders: Responders<Request>,
  whenCut: ResponseBytes<Request>['whenCut'],
): ResponseBytes<Request> | undefined {
  if (onExhausted !== undefined) oneOf(where, 'onExhausted', onExhausted, ['cut', 'finish'])
  if (!engine.policy.limits.some(({ unit }) => unit === 'response-bytes')) {
    if (onExhausted === undefined) return undefined
    return invalidPolicy(where, 'onExhausted', 'none without a limit of response-bytes', onExhausted)
  }
  if (count !== undefined) {
    throw new SluiceError(
      'INVALID_POLICY',
      `${where}: count: expected none beside a limit of response-bytes, whose bytes are charged before the outcome is known: ` +
        'use two limiters',
    )
  }
  return { engine, responders, whenCut, onExhausted: onExhausted ?? 'cut' }
}

/** The parts that charge response bodies. */
export interface ResponseBytes<Request> {
  readonly engine: Engine<Request>
  readonly responders: Responders<Request>
  /** Called once for each response that is cut, with the refusal. */
  readonly whenCut: (context: HttpContext<Request>, refusal: Verdict) => void
  readonly onExhausted: OnExhausted
}

/** Charges the body of a response as it is sent. Enforces the quota unless the verdict is a refusal or only reported. */
export function meterResponse<Request>(
  by: ResponseBytes<Request>,
  context: HttpContext<Request>,
  verdict: Verdict,
): void {
  const { cells } = verdict[DECISION].request.plan
  const capacities = cells.map(({ limits: [limit] }) => (limit?.unit === 'response-bytes' ? limit.capacity : undefined))
  const max = Math.min(...capacities.map((each) => each ?? Number.POSITIVE_INFINITY))
  if (max === Number.POSITIVE_INFINITY || verdict.kind === 'listed' || isOver(context.response)) return
  const costsOf = (bytes: number) => capacities.map((each) => Math.min(bytes, each ?? 0))
  const meter = new ResponseMeter(by, context, verdict, max, costsOf)
  meter.whenOpen = addGate(context.response as unknown as ServerResponse, meter)
}

class ResponseMeter<Request> implements Gate {
  /** Sends the waiting bytes. */
  whenOpen: () => void = () => {}
  readonly #by: ResponseBytes<Request>
  readonly #context: HttpContext<Request>
  readonly #charges: StepCharges
  /** Whether bytes wait for room. */
  #isGated: boolean
  /** Bytes sent in all. */
  #sent = 0
  #isOver = false
  #timer: Timer | undefined

  constructor(
    by: ResponseBytes<Request>,
    context: HttpContext<Request>,
    verdict: Verdict,
    max: number,
    costsOf: (bytes: number) => readonly number[],
  ) {
    this.#by = by
    this.#context = context
    this.#charges = new StepCharges(
      STEP_BYTES,
      max,
      (bytes) => by.engine.chargeMore(verdict[DECISION], costsOf(bytes)),
      () => {
        if (!this.#isOver && this.#isGated) this.whenOpen()
      },
    )
    this.#isGated = verdict.allowed && !verdict.reported
  }

  room(): number {
    const { refusal, step, charging, open } = this.#charges
    // Only when more is to be sent: the body may have ended where the quota did.
    if (this.#isGated && refusal) this.#isGated = !this.#goesOn(refusal)
    if (!this.#isGated) return Number.POSITIVE_INFINITY
    return refusal ? 0 : Math.max(0, step - charging - open)
  }

  passed(bytes: number, isLast: boolean): void {
    const charges = this.#charges
    this.#sent += bytes
    charges.add(bytes)
    if (isLast) this.#end()
    else if (charges.open > 0) {
      // A stream of few bytes is charged by the timer.
      this.#timer ??= this.#by.engine.timing.setTimeout(() => this.#flush(), CHARGE_EVERY_MS).unref()
    }
  }

  closed(): void {
    this.#end()
  }

  #flush(): void {
    this.#by.engine.timing.clearTimeout(this.#timer)
    this.#timer = undefined
    this.#charges.flush()
  }

  #end(): void {
    this.#by.engine.timing.clearTimeout(this.#timer)
    this.#isOver = true
    this.#charges.end()
  }

  /** Whether the response continues without room. If not, its connection ends. */
  #goesOn(refusal: Verdict): boolean {
    const { engine, responders, whenCut, onExhausted } = this.#by
    const context = this.#context
    const whenExhausted = propertyOf(responders.for(refusal), 'whenExhausted')
    const goesOn = !isBarred(refusal) && whenExhausted?.(context, this.#sent) === true
    const isCut = !goesOn && onExhausted !== 'finish'
    if (isCut) {
      if (isOver(context.response)) return false
      whenCut(context, refusal)
      abortResponse(context.response)
    }
    engine.conclude(isCut ? refusal : served(refusal), isCut)
    return !isCut
  }
}
