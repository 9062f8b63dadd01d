import { type PartsAndSteps, partsAndSteps, passThroughGuard } from '../../http/guard/guard.js'
import type { InForce } from '../../http/guard/guard-feature.js'
import { type HandleInvalid, invalidRequests } from '../../http/guard/invalid.js'
import { end, type Outcome, SKIPPED } from '../../http/guard/outcome.js'
import { type GuardComposition, type GuardParts, requestLimiter } from '../../http/guard/parts.js'
import { anonymousBy } from '../../http/identity/anonymous.js'
import { byIp } from '../../http/identity/ip.js'
import { Engine } from '../../limiter/engine.js'
import type { Composition } from '../../limiter/limiter.js'
import { LimiterEmitter } from '../../limiter/limiter-emitter.js'
import type { Counting } from '../../policy/costs.js'
import type { Limit } from '../../policy/limits/limit.js'
import { POLICY_OPTIONS, Policy, type PolicyChoice } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import { SluiceError, show } from '../../util/errors.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { propertyOf } from '../../util/property-of.js'
import { Resets } from '../../util/resets.js'
import type { Timing } from '../../util/timing.js'
import { knownOptions } from '../../util/validate.js'
import { LIMITER_WARNINGS, type LimiterWarning, Warnings } from '../../util/warnings.js'
import { type MaybePromise, whenKnown } from '../../util/when-known.js'
import { DECISION, PARTS, type Verdict } from '../../verdict/verdict.js'
import type { Limiter } from '../limiter.js'
import { eitherDeny } from '../lists/list-step.js'
import { RATE_LIMIT_OPTIONS, type RateLimitOptions } from '../options.js'
import { QUEUES } from '../queues/limiter-queues.js'
import { NOT_LIMITED } from '../queues/request-queues.js'
import { noteGuardOf } from './guards-of.js'
import { NO_POLICIES, Passage, reportedIn, without } from './passage.js'
import { policiesByHand } from './policies-by-hand.js'
import type { MatchedPolicies, OptionsOfPolicies, PolicySource } from './policy-source.js'
import { withVerdict } from './verdict-of-several.js'

const OF_GUARDS: readonly string[] = ['name', 'consistency', 'charges']

/** Options that the policies themselves define. */
function ofPolicies({ features }: Composition): readonly string[] {
  const all = [...POLICY_OPTIONS, ...features.flatMap(({ policyOptions = [] }) => policyOptions), 'count', 'enforce']
  return all.filter((option) => !OF_GUARDS.includes(option))
}

/** Passes a request through the guard of one set of policies. */
export type PassOne<Request> = typeof passThroughGuard<Request>

/** Parts of a guard that plays requests of another time. */
export interface Simulated<Request> {
  readonly timing: Timing
  readonly passOne: PassOne<Request>
}

/**
 * The guard for policies that are data, of a composition of features. It makes one limiter for each set of policies that match a request together. These
 * limiters have one store and one name, and count their common policies together.
 *
 * @param simulated replaces parts, for requests of another time
 * @throws SluiceError `INVALID_POLICY`
 */
export function guardOfDocuments<Request>(
  options: RateLimitOptions<Request>,
  composition: GuardComposition,
  simulated?: Simulated<Request>,
) {
  knownOptions('rateLimit', options, RATE_LIMIT_OPTIONS)
  const { policies, ...given } = options as typeof options & { readonly policies: PolicySource<Request> }
  const where = `policies ${show(given.name ?? 'default')}`
  for (const option of ofPolicies(composition)) {
    if (given[option as keyof typeof given] === undefined) continue
    throw new SluiceError(
      'INVALID_POLICY',
      `${where}: ${option}: expected none beside policies, which define it themselves`,
    )
  }
  const {
    store = composition.defaultStore(),
    name = 'default',
    onInvalid = 'reject',
    requestProperty = 'rateLimit',
  } = given
  const own = { ...given, store, name }
  const emitter = new LimiterEmitter(where, given.name)
  const resets = new Resets()
  const warnings = new Warnings(where, LIMITER_WARNINGS, own.warnings, emitter.listeners)
  const handleInvalid = invalidRequests<Request>({ where, all: [] }, onInvalid, false, warnings)
  const byHand = policiesByHand(where, own.name, policies, own, composition.features)
  const limiters = new LimitersOfPolicies(policies, own, {
    emitter,
    resets,
    document: byHand,
    handleInvalid,
    simulated,
    composition,
  })
  // Invalid options fail now, and not at the first request.
  for (const matched of policies.byName.values()) limiters.of(matched)
  policies.onCheck?.((matched) => limiters.of(matched))
  const guard = (context: HttpContext<Request>): MaybePromise<Outcome> => limiters.pass(context)
  const anonymous = anonymousBy<Request>(where, own.anonymous, warnings)
  const engine = new Engine(byHand, own.store, own, emitter, composition, simulated?.timing, resets)
  if (policies.onChange) engine.parts.get(QUEUES)?.follow((listener) => policies.onChange?.(listener) as () => void)
  const limiter = requestLimiter(composition, engine, undefined, anonymous) as Limiter<Request>
  const of = (matched: MatchedPolicies<never>) => limiters.of(matched as MatchedPolicies<Request>) as never
  noteGuardOf(limiter, { name, store, source: policies as PolicySource<never>, of })
  return Object.assign(guard, {
    limiter,
    requestProperty,
    // Some policies may take permits, now or after a change.
    holdsPermits: true,
  })
}

/** The guard of a match. `choice`: the limits of the match, where the guard has other numbers. */
interface Made<Request> {
  readonly parts: PartsAndSteps<Request>
  readonly choice: PolicyChoice<Request> | undefined
}

interface PartsOfLimiters<Request> {
  readonly composition: GuardComposition
  readonly emitter: LimiterEmitter
  /** A reset by hand is of the charges by all documents. */
  readonly resets: Resets
  readonly document: Counting
  readonly handleInvalid: HandleInvalid<Request>
  readonly simulated: Simulated<Request> | undefined
}

class LimitersOfPolicies<Request> {
  readonly #policies: PolicySource<Request>
  readonly #own: RateLimitOptions<Request>
  readonly #by: PartsOfLimiters<Request>
  readonly #passOne: PassOne<Request>
  readonly #made = new WeakMap<MatchedPolicies<Request>, Made<Request>>()
  readonly #isNew = warnedOnce()

  constructor(policies: PolicySource<Request>, own: RateLimitOptions<Request>, by: PartsOfLimiters<Request>) {
    this.#policies = policies
    this.#own = own
    this.#by = by
    this.#passOne = by.simulated?.passOne ?? passThroughGuard
  }

  of(matched: MatchedPolicies<Request>): Made<Request> {
    return this.#made.get(matched) ?? this.#makeOnce(matched)
  }

  // This and other rare ways are methods of their own, as they make closures: V8 would allocate for these in every request.
  #makeOnce(matched: MatchedPolicies<Request>): Made<Request> {
    return getOrInsert(this.#made, matched, () => this.#make(matched))
  }

  #make(matched: MatchedPolicies<Request>): Made<Request> {
    const { options, base } = matched
    if (!base || !differInNumbers(base.options, options)) {
      // Set only for policies that count bytes of responses.
      const countsResponses = options.limits?.some(({ unit }) => unit === 'response-bytes')
      const onExhausted = countsResponses ? this.#own.onExhausted : undefined
      const { emitter, resets, document, simulated, composition } = this.#by
      const shared = { emitter, resets, document, isNew: this.#isNew, timing: simulated?.timing }
      const deny = eitherDeny(propertyOf(this.#own, 'deny'), propertyOf(options, 'deny'))
      const all: RateLimitOptions<Request> = { ...this.#own, onExhausted, ...options, ...(deny && { deny }) }
      const parts = partsAndSteps(all, composition, shared)
      // Requests of a few clients are no evidence of the set-up.
      return { parts: base ? { ...parts, advice: this.of(base).parts.advice } : parts, choice: undefined }
    }
    const { limits = [] } = options
    const { name, charges } = this.#own
    const { features } = this.#by.composition
    const choice = new Policy<Request>({ key: byIp<Request>(), limits, name, ...(charges && { charges }) }, features)
    return { parts: this.of(base).parts, choice }
  }

  /** Passes a request through the policies in force, without those that it has passed already. `headers`: those that it has set. */
  pass(
    context: HttpContext<Request>,
    passed: ReadonlySet<string> = NO_POLICIES,
    headers: Outcome['headers'] = [],
  ): MaybePromise<Outcome> {
    let matched: ReturnType<PolicySource<Request>['match']>
    try {
      matched = this.#policies.match(context)
    } catch (error) {
      return this.#by.handleInvalid(error, undefined, context)
    }
    const contextWithHeaders = withHeaders(context, headers)
    return matched instanceof Promise
      ? this.#passLater(matched, contextWithHeaders, passed)
      : this.#run(matched, contextWithHeaders, passed)
  }

  #passLater(
    pending: Promise<MatchedPolicies<Request> | undefined>,
    context: HttpContext<Request>,
    passed: ReadonlySet<string>,
  ): Promise<Outcome> {
    return pending.then(
      (matched) => this.#run(matched, context, passed),
      (error) => this.#by.handleInvalid(error, undefined, context),
    )
  }

  #run(
    matched: MatchedPolicies<Request> | undefined,
    context: HttpContext<Request>,
    passed: ReadonlySet<string>,
  ): MaybePromise<Outcome> {
    if (!matched) return SKIPPED
    const { reported } = matched
    return reported ? this.#runBoth(reported, matched, context, passed) : this.#runEnforced(matched, context, passed)
  }

  #runBoth(
    reported: MatchedPolicies<Request>,
    matched: MatchedPolicies<Request>,
    context: HttpContext<Request>,
    passed: ReadonlySet<string>,
  ): MaybePromise<Outcome> {
    // Decided first, in the same turn of the event loop, so that a refusal of the others does not prevent its count.
    const aside = this.#run(reported, context, passed)
    const enforced = () => this.#runEnforced(matched, context, new Set([...passed, ...reportedIn(matched)]))
    if (aside instanceof Promise) return runBeside(aside, enforced, context)
    return whenKnown(enforced(), (known) => withVerdictOf(known, aside.verdict))
  }

  #runEnforced(
    matched: MatchedPolicies<Request>,
    context: HttpContext<Request>,
    passed: ReadonlySet<string>,
  ): MaybePromise<Outcome> {
    const { next } = matched
    const left = without(matched, passed)
    if (!left) return this.#run(next, context, passed)
    const guard = this.of(left)
    const { parts, choice } = guard
    if (!next && !parts.responders.queues) return this.#passOne(parts, context, choice)
    return this.#runInTurn(guard, new Passage(left, passed), next, context)
  }

  #runInTurn(
    { parts, choice }: Made<Request>,
    passage: Passage<Request>,
    next: MatchedPolicies<Request> | undefined,
    context: HttpContext<Request>,
  ): MaybePromise<Outcome> {
    const inForce = parts.responders.queues ? () => this.#inForce(passage, parts, context) : undefined
    const first = this.#passOne(parts, context, choice, inForce)
    return whenKnown(first, (known) => this.#goOn(known, passage, parts, next, context))
  }

  /** What has taken the place of the policies of a request that waits. Undefined if they are gone, or count other units. */
  #inForce(
    passage: Passage<Request>,
    { engine }: GuardParts<Request>,
    context: HttpContext<Request>,
  ): MaybePromise<InForce<Request> | undefined> {
    return whenKnown(this.#policies.match(context), (head) => {
      const now = passage.inForce(head, engine.policy)
      if (!now && passage.isReportedIn(head)) throw NOT_LIMITED
      if (!now) return undefined
      const { parts, choice = parts.engine.policy } = this.of(now)
      const { cost, anonymous, enforcement } = parts
      return { choice, cost, anonymous, onlyReport: enforcement.onlyReports, holder: parts }
    })
  }

  /** Goes on with the next match, or, after a wait, with the policies in force. */
  #goOn(
    first: Outcome,
    passage: Passage<Request>,
    { engine }: GuardParts<Request>,
    next: MatchedPolicies<Request> | undefined,
    context: HttpContext<Request>,
  ): MaybePromise<Outcome> {
    if (!first.proceed || (!next && !passage.hasWaited)) return first
    const { verdict, headers } = first
    const passed = passage.passedWith(first)
    // While the store cannot be reached, the charge stays.
    const refund = async () => verdict && engine.charges.refund(verdict[DECISION]).catch(() => false)
    const fail = async (error: unknown) => {
      await refund()
      throw error
    }
    let rest: MaybePromise<Outcome>
    try {
      rest = passage.hasWaited
        ? this.pass(context, passed, headers)
        : this.#run(next, withHeaders(context, headers), passed)
    } catch (error) {
      return fail(error)
    }
    if (rest instanceof Promise) rest = rest.catch(fail)
    return whenKnown(rest, (second) => {
      const names = new Set(second.headers.map(([name]) => name.toLowerCase()))
      const others = headers.filter(([name]) => !names.has(name.toLowerCase()))
      const both = { ...withVerdictOf(second, verdict), headers: [...others, ...second.headers] }
      return second.proceed || !verdict ? both : refund().then(() => both)
    })
  }
}

/**
 * Runs the enforced policies of a request beside those that are only reported. Awaits both, as an unhandled rejection ends the
 * process.
 */
async function runBeside<Request>(
  aside: Promise<Outcome>,
  run: () => MaybePromise<Outcome>,
  context: HttpContext<Request>,
): Promise<Outcome> {
  const [reported, enforced] = await Promise.allSettled([aside, (async () => run())()])
  if (enforced.status === 'rejected') throw enforced.reason
  const { value: outcome } = enforced
  const { verdict, proceed, reply, error, handler } = outcome
  if (reported.status === 'rejected') {
    for (const { [DECISION]: decision } of verdict?.[PARTS] ?? []) {
      await decision.by.charges.refund(decision).catch(() => false)
    }
    throw reported.reason
  }
  // Reported policies may have taken permits after the others have ended the request. No handler will release them.
  if (!proceed && !reply && !error && !handler) end(context)
  return withVerdictOf(outcome, reported.value.verdict)
}

/** The outcome of a request that other policies have decided on, too. A refusal has no charge to change. */
function withVerdictOf(outcome: Outcome, other: Verdict | undefined): Outcome {
  const { proceed, verdict } = outcome
  return { ...outcome, verdict: proceed ? withVerdict(verdict, other) : (verdict ?? other) }
}

/**
 * Whether two sets of options contain only limits, and those differ only in algorithms and numbers. One guard serves both then.
 */
function differInNumbers<Request>(one: OptionsOfPolicies<Request>, other: OptionsOfPolicies<Request>): boolean {
  const { limits: some = [], ...rest } = one
  const { limits: others = [], ...otherRest } = other
  if (some.length !== others.length || Object.keys({ ...rest, ...otherRest }).length > 0) return false
  return some.every((limit, i) => isLike(limit, others[i] as Limit))
}

/** The properties of a limit that a guard reads, beside its plan. */
const OF_GUARD = ['name', 'policy', 'key', 'respond', 'unit', 'lease', 'reserve', 'cost', 'estimate'] as const

function isLike(one: Limit, other: Limit): boolean {
  return OF_GUARD.every((field) => one[field] === other[field])
}

/** A request whose response has these headers already. */
function withHeaders<Request>(context: HttpContext<Request>, headers: Outcome['headers']): HttpContext<Request> {
  if (headers.length === 0) return context
  const sent = new Map(headers.map(([name, value]) => [name.toLowerCase(), value]))
  const getResponseHeader = (name: string) => sent.get(name.toLowerCase()) ?? context.getResponseHeader(name)
  return Object.create(context, { getResponseHeader: { value: getResponseHeader } })
}

/** Warnings about the set-up, which all guards share. */
const OF_SET_UP: ReadonlySet<LimiterWarning> = new Set([
  'SLUICE_BAN_OPEN_PROXY',
  'SLUICE_LIST_KIND',
  'SLUICE_NO_USER',
  'SLUICE_ONE_CLIENT',
  'SLUICE_OPEN_PROXY',
  'SLUICE_SAME_LIMITER_TWICE',
  'SLUICE_UNGROUPED_IPV6',
  'SLUICE_UNTRUSTED_PROXY',
])
/** Each guard warns of invalid requests once a minute. */
const AGAIN_MS = 60_000
const MAX_WARNINGS = 1000

/**
 * Returns a function that says whether a warning is new. Many guards have the same options and see the same requests. Faults of
 * the set-up are reported once, and faults of requests once a minute.
 */
function warnedOnce(): (code: LimiterWarning, message: string) => boolean {
  const warnedAt = new Map<string, number>()
  return (code, message) => {
    if (!OF_SET_UP.has(code) && code !== 'SLUICE_INVALID_REQUEST') return true
    const text = `${code} ${message}`
    const now = performance.now()
    const last = warnedAt.get(text)
    if (last !== undefined && (OF_SET_UP.has(code) || now - last < AGAIN_MS)) return false
    if (warnedAt.size >= MAX_WARNINGS) warnedAt.clear()
    warnedAt.set(text, now)
    return true
  }
}
