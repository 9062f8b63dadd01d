import type { ServerResponse } from 'node:http'
import type { Engine } from '../../limiter/engine.js'
import type { ReadablePlan } from '../../policy/plan.js'
import { type HttpContext, isOver } from '../../request/context.js'
import { invalidPolicy, SluiceError } from '../../util/errors.js'
import { oneOf } from '../../util/validate.js'
import { DECISION, isBarred, served, type Verdict } from '../../verdict/verdict.js'
import type { Responders } from '../responders/choice.js'
import { addGate, type Gate } from '../response/gated-response.js'
import { abortResponse } from '../response/sent-bytes.js'

/** Most bytes of a response that have been sent and are not known to have had room. */
const STEP_BYTES = 64 * 1024
/** Longest time until bytes that have been sent are charged. */
const CHARGE_EVERY_MS = 1000

/** What becomes of a response in whose middle a quota of its bytes is used up. */
export type OnExhausted = 'cut' | 'finish'

export interface ResponseBytesOptions {
  /**
   * What becomes of a response in whose middle a limit of `response-bytes` is used up, unless its responder slows it down or
   * lets it go on (`throttle`, `degrade`): `'cut'` ends its connection (over HTTP/2 its stream), which no client takes for the
   * end of the body, after 64 kB more at most; `'finish'` sends all of it, beyond the quota. @default 'cut'
   */
  readonly onExhausted?: OnExhausted
}

/**
 * What charges bodies of responses; undefined where no limit counts them.
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

/** What the bodies of responses are charged by. */
export interface ResponseBytes<Request> {
  readonly engine: Engine<Request>
  readonly responders: Responders<Request>
  /** Called once for each response that is cut, with the refusal that cuts it. */
  readonly whenCut: (context: HttpContext<Request>, refusal: Verdict) => void
  readonly onExhausted: OnExhausted
}

/** Charges the body of a response as it is sent, and holds it to the quota unless the verdict is a refusal or only reported. */
export function meterResponse<Request>(
  by: ResponseBytes<Request>,
  context: HttpContext<Request>,
  verdict: Verdict,
): void {
  const { resolved } = verdict[DECISION].request.plan as ReadablePlan
  const counting = resolved.filter(({ unit }) => unit === 'response-bytes')
  if (counting.length === 0 || verdict.kind === 'listed' || isOver(context.response)) return
  const most = Math.min(...counting.map(({ capacity }) => capacity))
  const meter = new ResponseMeter(by, context, verdict, most)
  meter.whenOpen = addGate(context.response as unknown as ServerResponse, meter)
}

class ResponseMeter<Request> implements Gate {
  /** Lets go on what waits. */
  whenOpen: () => void = () => {}
  readonly #by: ResponseBytes<Request>
  readonly #context: HttpContext<Request>
  readonly #verdict: Verdict
  /** Most that the limits can hold at all: a charge of more would be none. */
  readonly #most: number
  readonly #step: number
  /** Whether bytes wait for room. */
  #isGated: boolean
  /** Sent in all; since the last charge; and charged without knowing yet whether there was room. */
  #sent = 0
  #open = 0
  #asked = 0
  #refusal: Verdict | undefined
  #isOver = false
  #timer: NodeJS.Timeout | undefined

  constructor(by: ResponseBytes<Request>, context: HttpContext<Request>, verdict: Verdict, most: number) {
    this.#by = by
    this.#context = context
    this.#verdict = verdict
    this.#most = most
    this.#step = Math.min(STEP_BYTES, most)
    this.#isGated = verdict.allowed && !verdict.reported
  }

  room(): number {
    // Not before more is to be sent: the body may have ended where the quota did.
    if (this.#isGated && this.#refusal) this.#isGated = !this.#goesOn(this.#refusal)
    if (!this.#isGated) return Number.POSITIVE_INFINITY
    return this.#refusal ? 0 : Math.max(0, this.#step - this.#asked - this.#open)
  }

  passed(bytes: number, isLast: boolean): void {
    this.#sent += bytes
    this.#open += bytes
    if (isLast) this.#end()
    else if (this.#open >= this.#step) this.#charge()
    // A stream of few bytes is counted as well.
    else if (this.#open > 0) this.#timer ??= setTimeout(() => this.#charge(), CHARGE_EVERY_MS).unref()
  }

  closed(): void {
    this.#end()
  }

  #end(): void {
    this.#isOver = true
    this.#charge()
  }

  /** One charge at a time: what is sent meanwhile comes with the next. */
  #charge(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#asked > 0) return
    const bytes = Math.min(this.#open, this.#most)
    this.#open = 0
    if (bytes === 0) return
    this.#asked = bytes
    try {
      const verdict = this.#by.engine.chargeSent(this.#verdict, bytes)
      if (verdict instanceof Promise) verdict.then((late) => this.#charged(late), this.#failed)
      else this.#charged(verdict)
    } catch {
      this.#charged(undefined)
    }
  }

  /** A store that is broken and not away fails the requests that come, too: there it shows. */
  readonly #failed = () => this.#charged(undefined)

  #charged(verdict: Verdict | undefined): void {
    this.#asked = 0
    if (verdict && !verdict.allowed) this.#refusal ??= verdict
    if (this.#open > 0 && (this.#isOver || this.#open >= this.#step)) this.#charge()
    if (!this.#isOver && this.#isGated) this.whenOpen()
  }

  /** Whether the response goes on without room for it. If not, its connection ends. */
  #goesOn(refusal: Verdict): boolean {
    const { engine, responders, whenCut, onExhausted } = this.#by
    const context = this.#context
    const { whenExhausted } = responders.for(refusal)
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
