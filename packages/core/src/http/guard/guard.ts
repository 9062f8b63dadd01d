import { Readable } from 'node:stream'
import { type DecisionOptions, Limiter } from '../../limiter/limiter.js'
import { memoryStore } from '../../memory/store.js'
import { choosePolicy } from '../../policy/tiers.js'
import type { HttpContext } from '../../request/context.js'
import type { IdentityByKind } from '../../store/identity.js'
import { PEEK } from '../../store/store.js'
import { durationMs } from '../../util/duration.js'
import { invalidPolicy, SluiceError, show } from '../../util/errors.js'
import { isThenable } from '../../util/thenable.js'
import { knownOptions, optionalFunction, wholeNumber } from '../../util/validate.js'
import { warnOnRejection } from '../../util/warn-on-rejection.js'
import { Verdict } from '../../verdict/verdict.js'
import { type Charging, chargingFor } from '../charging/charging.js'
import { Permits, releasePermits } from '../charging/permits.js'
import { retryAfter } from '../headers/retry-after.js'
import { headerWriters } from '../headers/table.js'
import type { HeaderField, HeaderWriter } from '../headers/writer.js'
import { anonymousBy } from '../identity/anonymous.js'
import { byIp } from '../identity/ip.js'
import { Responders } from '../responders/choice.js'
import { lineUp } from '../responders/line-up.js'
import { reject } from '../responders/reject.js'
import { type Action, type Ending, isLater, type Reply } from '../responders/responder.js'
import { tellOfLeaving } from '../response/pipelined.js'
import { isSilent } from '../response/silence.js'
import { waitWithClient } from '../response/wait.js'
import { Enforcement } from './enforcement.js'
import { type InvalidOutcome, InvalidRequests } from './invalid.js'
import { RATE_LIMIT_OPTIONS, type RateLimitOptions } from './options.js'

/** What an adapter does with a request. */
export interface Outcome {
  /** Whether the handler runs. If not and there is no reply, the client has left. */
  readonly proceed: boolean
  /** What the limiter said; undefined when the request was skipped. */
  readonly verdict: Verdict | undefined
  /** To set on the response, in place of fields of the same name: what was there is merged in. */
  readonly headers: readonly HeaderField[]
  /** The response instead of the handler's. Its headers are among `headers`. */
  readonly reply: Reply | undefined
}

/**
 * Decides on requests, whatever the framework. Answers without a promise where nothing has to be
 * waited for; throws or rejects with what user functions and the store do, having charged nothing.
 */
export interface Guard<Request> {
  (context: HttpContext<Request>): Outcome | Promise<Outcome>
  /** The limiter behind it: to peek, reset, block and unblock. */
  readonly limiter: Limiter<Request | string | IdentityByKind>
  /** Whether its verdicts take permits of `concurrency` limits, which are held until the handler is done. */
  readonly holdsPermits: boolean
}

const ANSWERED: Outcome = Object.freeze({ proceed: false, verdict: undefined, headers: [], reply: undefined })
const FRESH: DecisionOptions = Object.freeze({ fresh: true })
const SKIPPED: Outcome = Object.freeze({ proceed: true, verdict: undefined, headers: [], reply: undefined })

/**
 * Makes the guard behind a framework's `rateLimit`. Everything is checked here, once.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function createGuard<Request>(options: RateLimitOptions<Request>): Guard<Request> {
  knownOptions('rateLimit', options, RATE_LIMIT_OPTIONS)
  const { key = byIp<Request>(), store = memoryStore() } = options
  const { cost = 1, skip, respond = reject<Request>(), headers = 'draft-11', anonymous = 'error', onVerdict } = options
  const policy = choosePolicy<Request>({ ...options, key })
  const { where } = policy
  if (typeof cost !== 'function') wholeNumber(where, 'cost', cost, 0)
  optionalFunction(where, 'skip', skip)
  optionalFunction(where, 'onVerdict', onVerdict)
  const onVerdictName = `${where}: onVerdict`
  const responders = new Responders(where, respond, policy.limits)
  const enforcement = new Enforcement(where, policy.name, options)
  const writers = headerWriters(where, headers)
  const limiter = new Limiter(policy, store, options, true, anonymousBy<Request>(where, anonymous))
  if (options.priority === undefined && limiter.limits.some(({ reserve }) => reserve !== undefined)) {
    invalidPolicy(where, 'priority', 'one beside reserve, or nobody could use what is kept', undefined)
  }
  const charging = chargingFor(where, options, limiter, store)
  const invalid = new InvalidRequests(policy, options.onInvalid ?? 'reject', enforcement.onlyReports)
  const permits = permitsOf(where, limiter)
  // Whoever may have to wait for room, or for the outcome of others, goes by nothing that was said a moment ago.
  const fresh = responders.linesUp || options.count !== undefined

  // Closures over a request are made in functions of their own, apart from the way that nearly every request takes: a
  // function with one in it makes room on the heap for what that sees whenever it is called.

  function guard(context: HttpContext<Request>): Outcome | Promise<Outcome> {
    tellOfLeaving(context.response)
    return skip ? unlessSkipped(context, skip(context.request, context)) : receive(context)
  }

  function unlessSkipped(context: HttpContext<Request>, skipped: unknown): Outcome | Promise<Outcome> {
    // Any thenable: one taken for an answer would be truthy, and skip every request.
    if (isThenable(skipped)) return Promise.resolve(skipped).then((late) => (late ? SKIPPED : receive(context)))
    return skipped ? SKIPPED : receive(context)
  }

  function receive(context: HttpContext<Request>): Outcome | Promise<Outcome> {
    const tooLarge = charging?.receive(context)
    if (!tooLarge) return isSilent(context.response) ? ended(context) : price(context)
    return { proceed: false, verdict: undefined, headers: sizedHeaders(tooLarge), reply: tooLarge }
  }

  /** No handler runs: another limiter has answered already, or the client has left. */
  function ended(context: HttpContext<Request>, verdict?: Verdict): Outcome {
    // Limiters before this one have no handler to wait for.
    void releasePermits(context.response)
    return verdict ? { proceed: false, verdict, headers: [], reply: undefined } : ANSWERED
  }

  function price(context: HttpContext<Request>): Outcome | Promise<Outcome> {
    return typeof cost === 'function' ? askFor(context, cost(context.request, context)) : ask(context, cost)
  }

  function askFor(context: HttpContext<Request>, units: number | Promise<number>): Outcome | Promise<Outcome> {
    return isThenable(units) ? Promise.resolve(units).then((late) => ask(context, late)) : ask(context, units)
  }

  function ask(context: HttpContext<Request>, units: number): Outcome | Promise<Outcome> {
    let verdict: Verdict | Promise<Verdict> | undefined
    try {
      verdict = decide(context, units)
    } catch (error) {
      return invalidOutcome(context, invalid.handle(error, units, context))
    }
    return verdict instanceof Promise ? weighLater(context, units, verdict) : weigh(context, units, verdict, false)
  }

  /** There is no verdict. */
  function invalidOutcome(context: HttpContext<Request>, ending: InvalidOutcome): Outcome {
    if (ending === 'proceed') return SKIPPED
    if (ending === 'gone') return ended(context)
    return { proceed: false, verdict: undefined, headers: sizedHeaders(ending), reply: ending }
  }

  function weighLater(context: HttpContext<Request>, units: number, verdict: Promise<Verdict | undefined>) {
    return verdict.then((late) => weigh(context, units, late, late?.kind === 'decided'))
  }

  /** Acts on a verdict, unless it may change by the outcome of other requests. */
  function weigh(
    context: HttpContext<Request>,
    units: number,
    verdict: Verdict | undefined,
    isShared: boolean,
  ): Outcome | Promise<Outcome> {
    if (!verdict) return SKIPPED
    const mayChange = charging !== undefined && !verdict.allowed && enforcement.covers(verdict)
    return mayChange ? reweigh(charging, context, units, verdict, isShared) : act(context, units, verdict)
  }

  function reweigh(
    charging: Charging<Request>,
    context: HttpContext<Request>,
    units: number,
    verdict: Verdict,
    isShared: boolean,
  ): Outcome | Promise<Outcome> {
    const again = () => decide(context, units) as Verdict | Promise<Verdict>
    const late = charging.reconsider(context, verdict, again, isShared)
    return late
      ? late.then((last) => (last ? act(context, units, last) : outcome(context, verdict, 'gone')))
      : act(context, units, verdict)
  }

  function decide(context: HttpContext<Request>, units: number): Verdict | Promise<Verdict> | undefined {
    // The limiter would take undefined, which a careless function returns, for its default.
    if (units === undefined)
      throw new SluiceError('INVALID_COST', `${where}: cost: expected a whole number, got undefined`)
    const from = askedWith(context)
    if (!responders.linesUp || units === 0 || !limiter.hasWaiters(context.request, context)) {
      return limiter.decideRequest(context.request, context, units, from)
    }
    // Nobody overtakes those who wait: whatever room there is, is theirs.
    const seen = limiter.decideRequest(context.request, context, units, from, PEEK)
    return seen instanceof Promise ? seen.then(behindOthers) : seen && behindOthers(seen)
  }

  function askedWith(context: HttpContext<Request>): DecisionOptions | undefined {
    const bytes = charging?.bytesOf(context)
    if (bytes === undefined) return fresh ? FRESH : undefined
    return { bytes, fresh }
  }

  function act(context: HttpContext<Request>, units: number, verdict: Verdict): Outcome | Promise<Outcome> {
    if (!enforcement.covers(verdict)) return report(context, verdict)
    return verdict.allowed ? admit(context, verdict, responders.slowness(verdict)) : respondTo(context, units, verdict)
  }

  function respondTo(context: HttpContext<Request>, units: number, verdict: Verdict): Outcome | Promise<Outcome> {
    const arrivedAt = performance.now()
    const action = responders.for(verdict)({
      context,
      verdict,
      lineUp: (options) => lineUp(limiter, context, units, verdict, options, askedWith(context)),
    })
    return isThenable(action)
      ? Promise.resolve(action).then((late) => end(context, verdict, late, arrivedAt))
      : end(context, verdict, action, arrivedAt)
  }

  function report(context: HttpContext<Request>, decided: Verdict): Outcome {
    const verdict = Verdict.marked(decided, { reported: true })
    if (verdict.allowed) hold(context, verdict)
    return outcome(context, verdict, 'proceed')
  }

  function admit(context: HttpContext<Request>, verdict: Verdict, slownessMs: number): Outcome | Promise<Outcome> {
    hold(context, verdict)
    const waitMs = Math.max(verdict.delayMs, slownessMs)
    return waitMs > 0 ? takeTurn(context, verdict, waitMs) : outcome(context, verdict, 'proceed')
  }

  function hold(context: HttpContext<Request>, verdict: Verdict): void {
    permits?.hold(verdict, context.response)
    charging?.settleLater(context, verdict)
    responders.admitted(context)
  }

  function end(
    context: HttpContext<Request>,
    first: Verdict,
    action: Action,
    arrivedAt: number,
  ): Outcome | Promise<Outcome> {
    if (!isLater(action)) return outcome(context, first, action)
    const { verdict, ending } = action
    if (ending !== 'proceed' || !verdict.allowed) return outcome(context, verdict, ending)
    hold(context, verdict)
    // The wait in line counts as part of what it is put off by, or those before it would be overtaken.
    const slownessMs = responders.slowness(verdict) - (performance.now() - arrivedAt)
    // Also with nothing to wait for: who has left meanwhile gets no handler to run.
    return takeTurn(context, verdict, Math.max(verdict.delayMs, slownessMs))
  }

  async function takeTurn(context: HttpContext<Request>, verdict: Verdict, waitMs: number): Promise<Outcome> {
    if (await waitWithClient(context.response, waitMs)) return outcome(context, verdict, 'proceed')
    await limiter.refundVerdict(verdict)
    return outcome(context, verdict, 'gone')
  }

  function outcome(context: HttpContext<Request>, verdict: Verdict, ending: Ending): Outcome {
    if (ending !== 'gone' && ending !== 'proceed') checkReply(where, ending)
    if (onVerdict) warnOnRejection(onVerdictName, onVerdict(context.request, verdict, context))
    if (ending === 'gone') return ended(context, verdict)
    // This limiter, or another one, has answered 413 meanwhile.
    if (isSilent(context.response)) return discard(context, verdict, ending)
    if (ending === 'proceed') {
      const tells = enforcement.tells(verdict) && !responders.hidesQuota
      const headers = tells ? quotaHeaders(writers, context, verdict) : []
      return { proceed: true, verdict, headers, reply: undefined }
    }
    const fields = ending.tellsQuota ? quotaHeaders(writers, context, verdict) : []
    if (ending.tellsQuota && verdict.retryAfterMs !== undefined) {
      retryAfter(verdict.retryAfterMs, context, fields)
    }
    return { proceed: false, verdict, headers: [...fields, ...sizedHeaders(ending)], reply: ending }
  }

  function discard(context: HttpContext<Request>, verdict: Verdict, ending: Ending): Outcome {
    // Where the store cannot be reached, it stays charged.
    void limiter.refundVerdict(verdict).catch(() => {})
    const body = typeof ending === 'object' ? ending.body : undefined
    if (body instanceof Readable) body.destroy()
    return ended(context, verdict)
  }

  return Object.assign(guard, {
    limiter: limiter as Limiter<Request | string | IdentityByKind>,
    holdsPermits: permits !== undefined,
  })
}

function quotaHeaders<Request>(
  writers: readonly HeaderWriter[],
  context: HttpContext<Request>,
  verdict: Verdict,
): HeaderField[] {
  const fields: HeaderField[] = []
  // No reports, no quota to tell: the client is blocked. And what this process counts alone is not the quota.
  if (verdict.limits.length > 0 && verdict.kind === 'decided')
    for (const writer of writers) writer.write(verdict, context, fields)
  return fields
}

/** A reply's headers, with its length where it has one and does not say so itself. */
function sizedHeaders({ status, headers, body }: Reply): readonly HeaderField[] {
  const isSized = typeof body === 'string' || body instanceof Uint8Array
  if (!isSized || status === 204 || status === 304 || headers.some(([name]) => /^content-length$/i.test(name))) {
    return headers
  }
  return [...headers, ['Content-Length', String(Buffer.byteLength(body))]]
}

function behindOthers(verdict: Verdict): Verdict {
  return verdict.allowed ? Verdict.marked(verdict, { waitMs: 1 }) : verdict
}

function permitsOf<Request>(where: string, limiter: Limiter<Request>): Permits | undefined {
  const limits = limiter.limits.filter(({ algorithm }) => algorithm === 'concurrency')
  if (limits.length === 0) return undefined
  const ttls = limits.map(({ window }) => Number(window))
  // Checked again: a copy of a limit may have something changed.
  const maxHolds = limits.map(({ maxHold }) => durationMs(where, 'maxHold', maxHold))
  return new Permits(limiter, {
    shortestTtlMs: Math.min(...ttls),
    longestTtlMs: Math.max(...ttls),
    maxHoldMs: Math.min(...maxHolds),
  })
}

function checkReply(where: string, reply: unknown): void {
  const { status, headers, body } = (reply ?? {}) as Partial<Reply>
  const isBody = typeof body === 'string' || body instanceof Uint8Array || typeof body?.pipe === 'function'
  if (Number.isInteger(status) && Array.isArray(headers) && isBody) return
  throw new SluiceError(
    'INVALID_POLICY',
    `${where}: respond: expected a reply, "proceed" or "gone", got ${show(reply)}`,
  )
}
