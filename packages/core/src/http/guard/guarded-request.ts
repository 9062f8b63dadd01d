import { Readable } from 'node:stream'
import type { PolicyChoice } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import { warnOnRejection } from '../../util/warn-on-rejection.js'
import { type Later, whenKnown } from '../../util/when-known.js'
import { isBarred, Verdict } from '../../verdict/verdict.js'
import type { Charging } from '../charging/charging.js'
import { releasePermits } from '../charging/permits.js'
import { type Action, type Ending, isHandover, isLater } from '../responders/responder.js'
import { ensureCloseEvent } from '../response/close-event.js'
import { isDisabled } from '../response/disabled-response.js'
import { waitWithClient } from '../response/wait.js'
import {
  checkReply,
  ENDED,
  handoverOutcome,
  type Outcome,
  quotaHeaders,
  refusalOutcome,
  replyOutcome,
  SKIPPED,
} from './outcome.js'
import type { GuardParts } from './parts.js'
import { LEFT, waitBooked, waitBookedInTime, waitTurn } from './wait-turn.js'

/** The way of one request through a guard, from its arrival to its outcome. The steps stand in the order in which they run. */
export class GuardedRequest<Request> {
  readonly #guard: GuardParts<Request>
  readonly #context: HttpContext<Request>
  readonly #choice: PolicyChoice<Request> | undefined
  #units = 1
  /** Whether a trap is for its path. */
  #isCaught = false

  /** `choice`: the limits of this request, where they differ in numbers from those that the guard was made with. */
  constructor(guard: GuardParts<Request>, context: HttpContext<Request>, choice?: PolicyChoice<Request>) {
    this.#guard = guard
    this.#context = context
    this.#choice = choice
  }

  /** Without a promise where nothing has to be awaited. */
  run(): Later<Outcome> {
    const { skip } = this.#guard
    const context = this.#context
    this.#guard.advice.request(context)
    ensureCloseEvent(context.response)
    if (!skip) return this.#askLists()
    // Any thenable is awaited: taken for a boolean it would be truthy, and skip every request.
    return whenKnown<unknown, Outcome>(skip(context.request, context), (skipped) =>
      skipped ? SKIPPED : this.#askLists(),
    )
  }

  /** Before anything else is read from the request: a client on a list needs no key, and has no cost. */
  #askLists(): Later<Outcome> {
    const { limiter, enforcement } = this.#guard
    const pending = limiter.listsPending
    if (pending) return pending.then(() => this.#askLists())
    let listed: Verdict | undefined
    try {
      listed = limiter.decideByList(this.#context)
    } catch (error) {
      return this.#handleInvalid(error)
    }
    if (!listed) return this.#receive()
    const isEnforced = enforcement.covers(listed)
    if (!listed.allowed && isEnforced) return isDisabled(this.#context.response) ? this.#end() : this.#refuse(listed)
    return this.#receive(isEnforced ? listed : Verdict.marked(listed, { reported: true }))
  }

  /** Checks the announced body, before anything is charged. `listed`: the verdict of a request that goes on uncharged. */
  #receive(listed?: Verdict): Later<Outcome> {
    const context = this.#context
    const bodyProblem = this.#guard.charging?.receive(context)
    if (bodyProblem) return replyOutcome(bodyProblem)
    if (isDisabled(context.response)) return this.#end()
    return listed ? this.#finish(listed, 'proceed') : this.#resolveCost()
  }

  #resolveCost(): Later<Outcome> {
    const { cost } = this.#guard
    if (typeof cost !== 'function') return this.#decide(cost)
    return whenKnown(cost(this.#context.request, this.#context), (units) => this.#decide(units))
  }

  #decide(units: number): Later<Outcome> {
    this.#units = units
    let verdict: Verdict | Promise<Verdict | undefined> | undefined
    try {
      this.#isCaught = this.#guard.bans?.catches(this.#context) ?? false
      verdict = this.#guard.decider.decide(this.#context, units, this.#choice)
    } catch (error) {
      return this.#handleInvalid(error)
    }
    if (!(verdict instanceof Promise)) return this.#handleVerdict(verdict, false)
    const { limiter } = this.#guard
    return verdict.then(
      // What was waited for may have been a function of the application.
      (late) => this.#handleVerdict(late, late?.kind === 'decided' && limiter.storeAnswersLater),
      (error) => this.#handleInvalid(error),
    )
  }

  /** The request cannot be counted, for what it lacks or gets wrong: there is no verdict. */
  #handleInvalid(error: unknown): Outcome {
    return this.#guard.invalid.handle(error, this.#units, this.#context)
  }

  /** `isShared`: whether the store that decided may hold charges of other processes. */
  #handleVerdict(verdict: Verdict | undefined, isShared: boolean): Later<Outcome> {
    if (!verdict) return SKIPPED
    this.#guard.advice.verdict(verdict)
    const { charging, enforcement } = this.#guard
    const mayChange = charging !== undefined && !verdict.allowed && enforcement.covers(verdict)
    return mayChange ? this.#reconsider(charging, verdict, isShared) : this.#respond(verdict)
  }

  /** A refusal may turn into an admission by the outcome of other requests. */
  #reconsider(charging: Charging<Request>, refusal: Verdict, isShared: boolean): Later<Outcome> {
    const { decider } = this.#guard
    const decideAgain = () => decider.decide(this.#context, this.#units, this.#choice) as Verdict | Promise<Verdict>
    const changed = charging.reconsider(this.#context, refusal, decideAgain, isShared)
    if (!changed) return this.#respond(refusal)
    return changed.then((last) => (last ? this.#respond(last) : this.#leave(refusal)))
  }

  #respond(verdict: Verdict): Later<Outcome> {
    const { enforcement } = this.#guard
    if (!enforcement.covers(verdict)) return this.#report(verdict)
    const sprung = this.#isCaught ? this.#guard.bans?.spring(this.#context, verdict) : undefined
    return sprung ? sprung.then((last) => this.#enforce(last)) : this.#enforce(verdict)
  }

  #enforce(verdict: Verdict): Later<Outcome> {
    const { responders } = this.#guard
    if (verdict.allowed) return this.#admit(verdict, responders.slowness(verdict))
    // One that waits may be admitted yet.
    return responders.for(verdict).queues ? this.#refuse(verdict) : this.#strike(verdict)
  }

  /** A refusal that is final is a strike, unless the store has made it one. It may start a ban, and is one by that then. */
  #strike(refusal: Verdict): Later<Outcome> {
    const struck = this.#guard.bans?.strike(this.#context, refusal)
    return struck ? struck.then((verdict) => this.#refuse(verdict)) : this.#refuse(refusal)
  }

  /** The verdict is not enforced: the request proceeds, whatever it says. */
  #report(decided: Verdict): Outcome {
    const verdict = Verdict.marked(decided, { reported: true })
    if (verdict.allowed) {
      this.#holdCharges(verdict)
      this.#noteAdmitted(verdict)
    }
    return this.#finish(verdict, 'proceed')
  }

  #admit(verdict: Verdict, slownessMs: number): Later<Outcome> {
    this.#holdCharges(verdict)
    this.#noteAdmitted(verdict)
    if (verdict.delayMs > 0) return this.#waitTurnThenFinish(verdict, slownessMs)
    return slownessMs > 0 ? this.#waitThenFinish(verdict, slownessMs) : this.#finish(verdict, 'proceed')
  }

  #refuse(verdict: Verdict): Later<Outcome> {
    const { limiter, decider, responders } = this.#guard
    const context = this.#context
    const arrivedAt = performance.now()
    let hasLeft = false
    const action = responders.for(verdict)({
      context,
      verdict,
      waitTurn: async (options) => {
        const until = performance.now() + options.maxWaitMs
        const from = decider.optionsFor(context)
        let turn = await waitTurn(limiter, context, this.#units, verdict, options, from, this.#choice)
        if (turn !== 'gone' && turn.allowed) {
          this.#holdCharges(turn)
          const wait = { client: options.client, maxWaitMs: until - performance.now() }
          if (turn.delayMs > 0) turn = await waitBookedInTime(limiter, context, turn, verdict, wait)
        }
        hasLeft = turn === 'gone'
        return turn
      },
    })
    return whenKnown(action, (known) =>
      hasLeft && known === 'gone' ? this.#leave(verdict) : this.#carryOut(known, verdict, arrivedAt),
    )
  }

  /** Does what a responder says. It may have waited until the limiter admitted the request after all. */
  #carryOut(action: Action, refusal: Verdict, arrivedAt: number): Later<Outcome> {
    const { verdict, ending } = isLater(action) ? action : { verdict: refusal, ending: action }
    if (ending === 'proceed' && verdict.allowed) return this.#proceedLate(verdict, arrivedAt)
    const hasWaited = this.#guard.responders.for(refusal).queues === true && ending !== 'gone'
    const struck = hasWaited ? this.#guard.bans?.strike(this.#context, verdict) : undefined
    if (!struck) return this.#finish(verdict, ending)
    return struck.then((last) => (isBarred(last) ? this.#refuse(last) : this.#finish(verdict, ending)))
  }

  /** `waitTurn` has waited until its turn came, and holds its charges. */
  #proceedLate(verdict: Verdict, arrivedAt: number): Later<Outcome> {
    this.#noteAdmitted(verdict)
    // The wait in the queue counts as part of the slowness, or later requests would overtake this one.
    const slownessMs = this.#guard.responders.slowness(verdict) - (performance.now() - arrivedAt)
    // Also with nothing left to wait for: if the client has left meanwhile, the handler must not run.
    return this.#waitThenFinish(verdict, Math.max(0, slownessMs))
  }

  /** From now on the request holds its permits, and its charge is corrected when its outcome is known. */
  #holdCharges(verdict: Verdict): void {
    const { permits, charging } = this.#guard
    permits?.hold(verdict, this.#context.response)
    charging?.applyOutcomeLater(this.#context, verdict)
  }

  /** It has been admitted for good. */
  #noteAdmitted(verdict: Verdict): void {
    const { responders, bans } = this.#guard
    responders.admitted(this.#context)
    bans?.countLater(this.#context, verdict)
  }

  /** Waits for the turn that a queueing limit has given, and at least for so many ms. */
  async #waitTurnThenFinish(verdict: Verdict, slownessMs: number): Promise<Outcome> {
    const { limiter, responders } = this.#guard
    const context = this.#context
    const began = performance.now()
    try {
      await waitBooked(limiter, context, verdict, () => responders.clientOf(context, verdict))
    } catch (error) {
      await limiter.refundVerdict(verdict)
      if (error === LEFT) return this.#leave(verdict)
      throw error
    }
    return this.#waitThenFinish(verdict, Math.max(0, slownessMs - (performance.now() - began)))
  }

  async #waitThenFinish(verdict: Verdict, waitMs: number): Promise<Outcome> {
    if (await waitWithClient(this.#context.response, waitMs)) return this.#finish(verdict, 'proceed')
    await this.#guard.limiter.refundVerdict(verdict)
    return this.#leave(verdict)
  }

  /** The client has left before its request was admitted, or before its turn came: it was not refused, and holds no charge. */
  #leave(verdict: Verdict): Outcome {
    return this.#finish(Verdict.marked(verdict, { hasLeft: true }), 'gone')
  }

  #finish(decided: Verdict, ending: Ending): Outcome {
    const verdict = ending === 'proceed' ? Verdict.served(decided) : decided
    const { where, warn, onVerdict, enforcement, responders, writers } = this.#guard
    const context = this.#context
    if (ending !== 'gone' && ending !== 'proceed') checkReply(where, ending)
    const { limiter } = this.#guard
    const isRefused = !verdict.allowed && ending !== 'proceed' && verdict.reason !== 'left'
    if (isRefused) limiter.noteRefusal(verdict)
    limiter.noteDecision(verdict, isRefused)
    if (onVerdict) warnOnRejection(`${where}: onVerdict`, onVerdict(context.request, verdict, context), warn)
    if (ending === 'gone') return this.#end(verdict)
    // A limiter, this one or another, has replied 413 meanwhile.
    if (isDisabled(context.response)) return this.#discard(verdict, ending)
    if (ending !== 'proceed') {
      return isHandover(ending)
        ? handoverOutcome(ending, context, verdict, writers)
        : refusalOutcome(ending, context, verdict, writers)
    }
    this.#guard.responseBytes?.meter(context, verdict)
    const showsQuota = enforcement.showsQuota(verdict) && !responders.hidesQuota
    const headers = showsQuota ? quotaHeaders(writers, context, verdict) : []
    return { proceed: true, verdict, headers, reply: undefined, error: undefined, handler: undefined }
  }

  #discard(verdict: Verdict, ending: Ending): Outcome {
    // Where the store cannot be reached, the charge stays.
    void this.#guard.limiter.refundVerdict(verdict).catch(() => {})
    const body = typeof ending === 'object' && !isHandover(ending) ? ending.body : undefined
    if (body instanceof Readable) body.destroy()
    return this.#end(verdict)
  }

  /** No handler runs, and this limiter sends nothing. */
  #end(verdict?: Verdict): Outcome {
    // Limiters before this one have no handler to wait for either.
    void releasePermits(this.#context.response)
    return verdict ? { ...ENDED, verdict } : ENDED
  }
}
