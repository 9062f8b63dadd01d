import { propertyOf } from '../../util/property-of.js'
import { type MaybePromise, whenKnown } from '../../util/when-known.js'
import { DECISION, isBarred, marked, type Verdict } from '../../verdict/verdict.js'
import { type Action, isLater } from '../responders/responder.js'
import { waitWithClient } from '../response/wait.js'
import type { Waits } from './guard-feature.js'
import type { GuardedRequest } from './guarded-request.js'
import { isOutcome, type Outcome } from './outcome.js'

/**
 * Determines the ending of a request after its decision, and waits for its turn. Returns a promise only where it has to wait.
 * The outcome is that of a request whose policies changed while it waited, so that they do not limit it, or cannot count it.
 */
export function respond<Request>(request: GuardedRequest<Request>): MaybePromise<Outcome | undefined> {
  const { guard, verdict, isEnforced, ending } = request
  if (!verdict || ending) return undefined
  if (!isEnforced) return report(request, verdict)
  if (!verdict.allowed) return refuse(request, verdict)
  const slownessMs = guard.responders.slowness(verdict)
  admit(request, verdict)
  if (verdict.delayMs > 0) return waitForTurn(request, verdict, slownessMs)
  return slownessMs > 0 ? waitSlowly(request, verdict, slownessMs) : undefined
}

/** The verdict is not enforced: the request proceeds in any case. */
function report<Request>(request: GuardedRequest<Request>, decided: Verdict): undefined {
  const verdict = marked(decided, { reported: true })
  if (verdict.allowed) admit(request, verdict)
  request.verdict = verdict
  request.ending = 'proceed'
}

/** The request is admitted for good. */
function admit<Request>(request: GuardedRequest<Request>, verdict: Verdict): void {
  request.holdCharges(verdict)
  proceed(request, verdict)
}

function proceed<Request>(request: GuardedRequest<Request>, verdict: Verdict): void {
  for (const proceeds of request.holder.proceeding) proceeds(request.context, verdict)
  request.verdict = verdict
  request.ending = 'proceed'
}

function refuse<Request>(request: GuardedRequest<Request>, refusal: Verdict): MaybePromise<Outcome | undefined> {
  const { guard, context } = request
  const arrivedAt = guard.engine.timing.now()
  let hasLeft = false
  let outcome: Outcome | undefined
  const action = guard.responders.for(refusal)({
    context,
    verdict: refusal,
    waitTurn: async (options) => {
      const turn = await (guard.waits as Waits<Request>).inQueue(request, refusal, options)
      hasLeft = turn === 'gone'
      if (turn === 'gone' || !isOutcome(turn)) return turn
      // The responder has nothing left to do.
      outcome = turn
      return 'gone'
    },
  })
  return whenKnown(action, (known): MaybePromise<Outcome | undefined> => {
    if (outcome) return outcome
    if (hasLeft && known === 'gone') request.leave(refusal)
    else return carryOut(request, known, refusal, arrivedAt)
  })
}

/** Applies a responder's ending. The limiter may have admitted the request while the responder waited. */
function carryOut<Request>(
  request: GuardedRequest<Request>,
  action: Action,
  refusal: Verdict,
  arrivedAt: number,
): MaybePromise<Outcome | undefined> {
  const { responders, engine } = request.guard
  const { verdict, ending } = isLater(action) ? action : { verdict: refusal, ending: action }
  if (ending === 'proceed' && verdict.allowed) {
    // It has waited until its turn came, and holds its charges.
    proceed(request, verdict)
    // The wait in the queue counts as part of the slowness, or later requests would overtake this one.
    const slownessMs = responders.slowness(verdict) - (engine.timing.now() - arrivedAt)
    // Called even when no time is left: if the client has left meanwhile, the handler must not run.
    return waitSlowly(request, verdict, Math.max(0, slownessMs))
  }
  request.verdict = verdict
  request.ending = ending
  const hasWaited = propertyOf(responders.for(refusal), 'queues') === true && ending !== 'gone'
  if (!hasWaited) return undefined
  return noteRefusal(request, verdict).then((barred) => barred && refuse(request, barred))
}

/** The refusal of a request that has waited may begin a ban, which refuses it then. */
async function noteRefusal<Request>(
  { context, holder }: GuardedRequest<Request>,
  refusal: Verdict,
): Promise<Verdict | undefined> {
  for (const refused of holder.refusedAfterWait) {
    const last = await refused(context, refusal)
    if (last && isBarred(last)) return last
  }
  return undefined
}

/** Waits for the turn that a queueing limit has booked, and at least for so many ms. */
async function waitForTurn<Request>(
  request: GuardedRequest<Request>,
  verdict: Verdict,
  slownessMs: number,
): Promise<undefined> {
  const { waits, engine } = request.guard
  const began = engine.timing.now()
  if (await (waits as Waits<Request>).forTurn(request.context, verdict)) {
    return waitSlowly(request, verdict, Math.max(0, slownessMs - (engine.timing.now() - began)))
  }
  request.leave(verdict)
}

async function waitSlowly<Request>(
  request: GuardedRequest<Request>,
  verdict: Verdict,
  waitMs: number,
): Promise<undefined> {
  if (await waitWithClient(request.context.response, waitMs)) return
  await request.guard.engine.charges.refund(verdict[DECISION])
  request.leave(verdict)
}
