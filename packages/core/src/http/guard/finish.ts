import { Readable } from 'node:stream'
import { DECISION, served, type Verdict } from '../../verdict/verdict.js'
import { unstored } from '../headers/unstored.js'
import { type Ending, isHandover } from '../responders/responder.js'
import { isDisabled } from '../response/disabled-response.js'
import type { GuardedRequest } from './guarded-request.js'
import { checkReply, end, type Outcome, quotaHeaders, refusalOutcome } from './outcome.js'

/** The outcome of a request whose verdict and ending are known. Notifies listeners and `onVerdict`. */
export function finish<Request>(request: GuardedRequest<Request>): Outcome {
  const { guard, context } = request
  const { where, onVerdict, engine, enforcement, responders } = guard
  const ending = request.ending as Ending
  const decided = request.verdict as Verdict
  const verdict = ending === 'proceed' ? served(decided) : decided
  if (ending !== 'gone' && ending !== 'proceed') checkReply(where, ending)
  engine.conclude(verdict, !verdict.allowed && ending !== 'proceed' && verdict.reason !== 'left', context)
  onVerdict?.(context.request, verdict, context)
  if (ending === 'gone') return end(context, verdict)
  // This limiter or another has replied 413 meanwhile.
  if (isDisabled(context.response)) return discard(request, verdict, ending)
  if (ending !== 'proceed') return refusalOutcome(ending, context, verdict, guard)
  for (const serves of guard.serving) serves(context, verdict)
  const showsQuota = enforcement.showsQuota(verdict) && !responders.hidesQuota
  const quota = showsQuota ? quotaHeaders(guard, context, verdict) : []
  // The handler may replace these.
  const headers = verdict.degraded ? [...quota, ...unstored([], context)] : quota
  return { proceed: true, verdict, headers, reply: undefined, error: undefined, handler: undefined }
}

function discard<Request>({ guard, context }: GuardedRequest<Request>, verdict: Verdict, ending: Ending): Outcome {
  // While the store cannot be reached, the charge stays.
  void guard.engine.charges.refund(verdict[DECISION]).catch(() => {})
  const body = typeof ending === 'object' && !isHandover(ending) ? ending.body : undefined
  if (body instanceof Readable) body.destroy()
  return end(context, verdict)
}
