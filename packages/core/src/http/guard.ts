import { invalidPolicy, SluiceError, show } from '../errors.js'
import type { IdentityByKind } from '../identity.js'
import { type AskOptions, Limiter } from '../limiter.js'
import { knownOptions, optionalFunction, wholeNumber } from '../limits/checks.js'
import { heed } from '../listeners.js'
import { memoryStore } from '../memory/store.js'
import { PEEK } from '../store.js'
import { isThenable } from '../thenable.js'
import { choosePolicy } from '../tiers.js'
import { Verdict } from '../verdict.js'
import { type Charging, type ChargingOptions, chargingFor } from './charging.js'
import type { HttpContext } from './context.js'
import { Enforcement } from './enforcement.js'
import { retryAfter } from './headers/retry-after.js'
import { headerWriters } from './headers/table.js'
import type { HeaderField, HeaderWriter } from './headers/writer.js'
import { anonymousBy } from './identity/anonymous.js'
import { byIp } from './identity/ip.js'
import { type InvalidOutcome, InvalidRequests } from './invalid.js'
import { lineUp } from './line-up.js'
import { RATE_LIMIT_OPTIONS, type RateLimitOptions } from './options.js'
import { tellOfLeaving } from './pipelined.js'
import { Places } from './places.js'
import { Responders } from './responders/choice.js'
import { reject } from './responders/reject.js'
import { type Action, type Ending, isLater, type Reply } from './responders/responder.js'
import { waitWithClient } from './wait.js'

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
}

const ANSWERED: Outcome = Object.freeze({ proceed: false, verdict: undefined, headers: [], reply: undefined })
const FRESH: AskOptions = Object.freeze({ fresh: true })
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
  const charging = chargingFor(where, options as ChargingOptions, limiter, store)
  const invalid = new InvalidRequests(policy, options.onInvalid ?? 'reject', enforcement.onlyReports)
  const places = placesOf(limiter)
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
    if (!tooLarge) return charging?.isCutOff(context) ? ANSWERED : price(context)
    return { proceed: false, verdict: undefined, headers: sizedHeaders(tooLarge), reply: tooLarge }
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
      return invalidOutcome(invalid.handle(error, units, context))
    }
    return verdict instanceof Promise ? weighLater(context, units, verdict) : weigh(context, units, verdict, false)
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
    if (!responders.linesUp || units === 0 || !limiter.hasLine(context.request, context)) {
      return limiter.decideRequest(context.request, context, units, from)
    }
    // Nobody overtakes those who wait: whatever room there is, is theirs.
    const seen = limiter.decideRequest(context.request, context, units, from, PEEK)
    return seen instanceof Promise ? seen.then(behindOthers) : seen && behindOthers(seen)
  }

  function askedWith(context: HttpContext<Request>): AskOptions | undefined {
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
    places?.hold(verdict, context.response)
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
    await limiter.giveBack(verdict)
    return outcome(context, verdict, 'gone')
  }

  function outcome(context: HttpContext<Request>, verdict: Verdict, ending: Ending): Outcome {
    if (ending !== 'gone' && ending !== 'proceed') checkReply(where, ending)
    if (onVerdict) heed(onVerdictName, onVerdict(context.request, verdict, context))
    if (ending === 'gone' || charging?.isCutOff(context, verdict))
      return { proceed: false, verdict, headers: [], reply: undefined }
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

  return Object.assign(guard, { limiter: limiter as Limiter<Request | string | IdentityByKind> })
}

/** No verdict was given, so none is told. */
function invalidOutcome(ending: InvalidOutcome): Outcome {
  if (ending === 'proceed') return SKIPPED
  if (ending === 'gone') return ANSWERED
  return { proceed: false, verdict: undefined, headers: sizedHeaders(ending), reply: ending }
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

function placesOf<Request>(limiter: Limiter<Request>): Places | undefined {
  const ttls = limiter.limits.filter((limit) => limit.algorithm === 'concurrency').map(({ window }) => Number(window))
  return ttls.length > 0 ? new Places(limiter, Math.min(...ttls)) : undefined
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
