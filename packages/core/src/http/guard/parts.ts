import type { EarlyDecisions } from '../../limiter/early-decisions.js'
import { Engine } from '../../limiter/engine.js'
import type { BasicLimiter, Composition } from '../../limiter/limiter.js'
import { LimiterEmitter } from '../../limiter/limiter-emitter.js'
import { type DecisionOptions, NO_OPTIONS } from '../../limiter/options.js'
import { adviseOnSetUp } from '../../limiter/set-up-advice.js'
import type { Counting } from '../../policy/costs.js'
import { isData } from '../../policy/given-identities.js'
import { Subjects } from '../../policy/subjects.js'
import { choosePolicy } from '../../policy/tiers.js'
import type { HttpContext } from '../../request/context.js'
import { MAX_DURATION_MS, spanMs } from '../../util/duration.js'
import { invalidPolicy } from '../../util/errors.js'
import { propertiesOf, propertyOf } from '../../util/property-of.js'
import type { Resets } from '../../util/resets.js'
import type { Timing } from '../../util/timing.js'
import { knownOptions, optionalFunction } from '../../util/validate.js'
import { optionalListener } from '../../util/warn-on-rejection.js'
import { LIMITER_WARNINGS, type LimiterWarning, Warnings } from '../../util/warnings.js'
import { requestCostFor } from '../charging/cost.js'
import { permitsFor } from '../charging/permit-holder.js'
import { headerWriters } from '../headers/table.js'
import { type AnonymousRequests, anonymousBy, mayBeMissing } from '../identity/anonymous.js'
import { byIp } from '../identity/ip.js'
import { Responders } from '../responders/choice.js'
import { reject } from '../responders/reject.js'
import { Decider } from './decider.js'
import { enforcementBy } from './enforcement.js'
import type { GuardBasis, GuardFeature, GuardPart } from './guard-feature.js'
import { invalidRequests } from './invalid.js'
import { BASIC_RATE_LIMIT_OPTIONS, type BasicRateLimitOptions } from './options.js'
import { RequestAdvice } from './request-advice.js'

/** The surroundings of guards, which an entry composes. */
export interface GuardComposition extends Composition {
  readonly guards: readonly GuardFeature[]
}

/** The parts of a guard, shared by all its requests. */
export type GuardParts<Request> = ReturnType<typeof guardParts<Request>>

/** The state that several guards of one `rateLimit` share. */
export interface SharedByGuards {
  readonly emitter: LimiterEmitter
  readonly resets: Resets
  /** All policies of their document. */
  readonly document: Counting
  /** Whether none of them has emitted this warning so far. */
  readonly isNew: (code: LimiterWarning, message: string) => boolean
  /** The time of waits. Undefined for that of the process. */
  readonly timing: Timing | undefined
}

/**
 * Checks every option, once.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function guardParts<Request>(
  options: BasicRateLimitOptions<Request>,
  composition: GuardComposition,
  shared?: SharedByGuards,
) {
  const { features, guards } = composition
  const ofPolicies = propertiesOf(features, 'policyOptions').flat()
  const ofGuards = propertiesOf(guards, 'guardOptions').flat()
  knownOptions(
    'rateLimit',
    options,
    [...BASIC_RATE_LIMIT_OPTIONS, ...ofPolicies, ...ofGuards],
    propertyOf(composition, 'absent'),
  )
  const answering = answeringParts(options, composition, shared)
  const { where, policy, warnings } = answering
  const deciding = decidingParts(options, answering, composition, shared)
  const { requestProperty: property = DEFAULT_PROPERTY } = options
  const isByAddress = policy.all.some(({ kinds }) => kinds.some((kind) => kind.split('+').includes('ip')))
  // The options are valid, and the store is a store.
  adviseOnSetUp(policy, warnings, options)
  return {
    ...answering,
    ...deciding,
    advice: new RequestAdvice<Request>(where, warnings, isByAddress),
    /** The property in which adapters store verdicts. */
    requestProperty: requestProperty(where, property),
  }
}

/** What a request is, and what is answered. */
function answeringParts<Request>(
  options: BasicRateLimitOptions<Request>,
  { features, guards }: GuardComposition,
  shared: SharedByGuards | undefined,
) {
  const { key = byIp<Request>(), skip, respond = reject<Request>(), headers = 'draft-11' } = options
  const { maxRetryAfter } = options
  const policy = choosePolicy<Request>({ ...options, key }, features)
  const { where } = policy
  const emitter = shared?.emitter ?? new LimiterEmitter(where, options.name)
  const warnings = new Warnings(where, LIMITER_WARNINGS, options.warnings, emitter.listeners, shared?.isNew)
  const cost = requestCostFor(policy, options.cost)
  optionalFunction(where, 'skip', skip)
  const onVerdict = optionalListener(where, 'onVerdict', options.onVerdict, warnings.emit)
  const byReason = propertiesOf(guards, 'responders').map((respondersFor) => respondersFor(options))
  const responders = new Responders(where, respond, policy.limits, Object.assign({}, ...byReason))
  const enforcement = enforcementBy(where, policy.name, options)
  return {
    /** The name of the limiter in errors. */
    where,
    policy,
    emitter,
    warnings,
    skip,
    cost,
    onVerdict,
    responders,
    enforcement,
    writers: headerWriters(where, headers),
    /** Maximum ms in `Retry-After`. */
    maxRetryAfterMs: maxRetryAfter === undefined ? MAX_DURATION_MS : spanMs(where, 'maxRetryAfter', maxRetryAfter),
  }
}

/** What decides on a request, and what it is charged for. */
function decidingParts<Request>(
  options: BasicRateLimitOptions<Request>,
  { where, policy, emitter, warnings, responders, enforcement }: ReturnType<typeof answeringParts<Request>>,
  composition: GuardComposition,
  shared: SharedByGuards | undefined,
) {
  const { guards } = composition
  const { store = composition.defaultStore(), onInvalid = 'reject' } = options
  const anonymous = anonymousBy<Request>(where, options.anonymous, warnings)
  const engine = new Engine(
    policy,
    store,
    options,
    emitter,
    composition,
    shared?.timing,
    shared?.resets,
    shared?.document,
  )
  if (options.priority === undefined && policy.limits.some(({ reserve }) => reserve !== undefined)) {
    invalidPolicy(where, 'priority', 'one beside reserve, as no request could use the reserve without', undefined)
  }
  const handleInvalid = invalidRequests<Request>(policy, onInvalid, enforcement.onlyReports, warnings)
  // A request that waits for room, or for the outcome of others, needs the current state.
  const fresh = responders.queues || propertiesOf(guards, 'needsFresh').some((needs) => needs(options))
  let features: readonly GuardPart<Request>[] = []
  const optionsBy: OptionsFor<Request>[] = []
  const optionsFor = decisionOptionsBy(optionsBy, fresh)
  const basis: GuardBasis<Request> = {
    where,
    engine,
    responders,
    warnings,
    anonymous,
    handleInvalid,
    // Otherwise a refusal may still become an admission, or may not be enforced.
    isFinal: !fresh && enforcement.coversAll,
    optionsFor,
    whenCut(context, refusal) {
      for (const cut of propertiesOf(features, 'cut')) cut(context, refusal)
    },
  }
  features = propertiesOf(guards, 'guard').flatMap((add) => add(basis, options) ?? [])
  optionsBy.push(...propertiesOf(features, 'optionsFor'))
  const hooks = hooksOf(features)
  const limiter = requestLimiter(composition, engine, hooks.early, anonymous)
  return {
    limiter,
    engine,
    anonymous,
    handleInvalid,
    ...hooks,
    decider: new Decider(engine, { anonymous, waits: responders.queues ? hooks.waits : undefined, optionsFor }),
    /** Undefined if no limit is a `concurrency` limit. */
    permits: permitsFor(where, limiter, engine.timing),
  }
}

/** The functions of features for the requests of a guard. Of several that decide early, or that wait, the first one counts. */
function hooksOf<Request>(features: readonly GuardPart<Request>[]) {
  return {
    features,
    early: propertiesOf(features, 'early')[0],
    waits: propertiesOf(features, 'waits')[0],
    charged: propertiesOf(features, 'charged'),
    proceeding: propertiesOf(features, 'proceeds'),
    serving: propertiesOf(features, 'serves'),
    refusedAfterWait: propertiesOf(features, 'refusedAfterWait'),
  }
}

type OptionsFor<Request> = NonNullable<GuardPart<Request>['optionsFor']>

/** The options of a request's decision beside its cost, by the features of the guard. */
function decisionOptionsBy<Request>(all: readonly OptionsFor<Request>[], fresh: boolean) {
  const usual: DecisionOptions = fresh ? Object.freeze({ ...NO_OPTIONS, fresh }) : NO_OPTIONS
  return (context: HttpContext<Request>): DecisionOptions => {
    let options = usual
    for (const optionsFor of all) {
      const perRequest = optionsFor(context)
      if (perRequest) options = { ...options, ...perRequest }
    }
    return options
  }
}

/**
 * The limiter that users see. An argument of its methods that is a text or plain data, and no request, names an identity.
 */
export function requestLimiter<Request>(
  { Limiter }: Composition,
  engine: Engine<Request>,
  early: EarlyDecisions<Request> | undefined,
  anonymous: AnonymousRequests<Request> | undefined,
): BasicLimiter<Request> {
  const replacement = anonymous?.key && { key: anonymous.key, mayReplace: mayBeMissing }
  return new Limiter(
    new Subjects(engine.policy, { namesIdentity: isData, areTexts: false, replacement }),
    engine,
    early,
  )
}

const DEFAULT_PROPERTY = 'rateLimit'

/** Properties of requests beyond those of Node's prototype: of frameworks, and of packages for authentication. */
const TAKEN = new Set(
  (
    'socket connection rawHeaders complete aborted url method body params query route routeOptions app server res req raw next baseUrl originalUrl ip ips path host ' +
    'hostname protocol secure subdomains xhr fresh stale port is404 id log user session cookies signedCookies'
  ).split(' '),
)

/**
 * The property that holds verdicts.
 *
 * @throws SluiceError `INVALID_POLICY` for a name that would replace something else
 */
function requestProperty(where: string, name: unknown): string {
  if (name === DEFAULT_PROPERTY) return name
  const isName = typeof name === 'string' && /^[A-Za-z_$][\w$]{0,63}$/.test(name)
  // Not imported: most processes do without it, and it takes long to load where nothing else has loaded it.
  const { IncomingMessage } = process.getBuiltinModule('node:http')
  if (isName && !(name in IncomingMessage.prototype) && !TAKEN.has(name)) return name
  invalidPolicy(
    where,
    'requestProperty',
    'a name of 1 to 64 letters, digits, "_" and "$" that requests do not have',
    name,
  )
}
