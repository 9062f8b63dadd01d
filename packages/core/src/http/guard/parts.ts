import { bansFor } from '../../features/bans/request-bans.js'
import { responseBytesFor } from '../../features/bodies/response-bytes.js'
import { REQUEST_LISTS } from '../../features/lists/list-sources.js'
import { hasLists, ListedSubjects } from '../../features/lists/listed-subjects.js'
import type { Composition } from '../../limiter/engine.js'
import { Engine } from '../../limiter/engine.js'
import { Limiter } from '../../limiter/limiter.js'
import { LimiterEmitter } from '../../limiter/limiter-emitter.js'
import { adviseOnSetUp } from '../../limiter/set-up-advice.js'
import type { Counting } from '../../policy/costs.js'
import { isData } from '../../policy/given-identities.js'
import { Subjects } from '../../policy/subjects.js'
import { choosePolicy } from '../../policy/tiers.js'
import { MAX_DURATION_MS, spanMs } from '../../util/duration.js'
import { invalidPolicy } from '../../util/errors.js'
import type { Resets } from '../../util/resets.js'
import type { Timing } from '../../util/timing.js'
import { knownOptions, optionalFunction } from '../../util/validate.js'
import { LIMITER_WARNINGS, type LimiterWarning, Warnings } from '../../util/warnings.js'
import { chargingFor } from '../charging/charging.js'
import { requestCostFor } from '../charging/cost.js'
import { permitsFor } from '../charging/permits.js'
import { headerWriters } from '../headers/table.js'
import { type AnonymousRequests, anonymousBy, mayBeMissing } from '../identity/anonymous.js'
import { byIp } from '../identity/ip.js'
import { Responders } from '../responders/choice.js'
import { reject } from '../responders/reject.js'
import { Decider } from './decider.js'
import { enforcementBy } from './enforcement.js'
import { invalidRequests } from './invalid.js'
import { RATE_LIMIT_OPTIONS, type RateLimitOptions } from './options.js'
import { RequestAdvice } from './request-advice.js'

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
  options: RateLimitOptions<Request>,
  composition: Composition,
  shared?: SharedByGuards,
) {
  knownOptions('rateLimit', options, RATE_LIMIT_OPTIONS)
  const answering = answeringParts(options, composition, shared)
  const { where, policy, warnings, enforcement } = answering
  const deciding = decidingParts(options, answering, composition, shared)
  const { onInvalid = 'reject', requestProperty: property = DEFAULT_PROPERTY } = options
  const handleInvalid = invalidRequests(policy, onInvalid, enforcement.onlyReports, warnings)
  const isByAddress = policy.all.some(({ kinds }) => kinds.some((kind) => kind.split('+').includes('ip')))
  // The options are valid, and the store is a store.
  adviseOnSetUp(policy, warnings, options)
  return {
    ...answering,
    ...deciding,
    warn: warnings.emit,
    advice: new RequestAdvice<Request>(where, warnings, isByAddress),
    /** The property in which adapters store verdicts. */
    requestProperty: requestProperty(where, property),
    handleInvalid,
  }
}

/** What a request is, and what is answered. */
function answeringParts<Request>(
  options: RateLimitOptions<Request>,
  { features }: Composition,
  shared: SharedByGuards | undefined,
) {
  const { key = byIp<Request>(), skip, respond = reject<Request>(), headers = 'draft-11', onVerdict } = options
  const { maxRetryAfter } = options
  const policy = choosePolicy<Request>({ ...options, key }, features)
  const { where } = policy
  const emitter = shared?.emitter ?? new LimiterEmitter(where, options.name)
  const warnings = new Warnings(where, LIMITER_WARNINGS, options.warnings, emitter.listeners, shared?.isNew)
  const cost = requestCostFor(policy, options.cost)
  optionalFunction(where, 'skip', skip)
  optionalFunction(where, 'onVerdict', onVerdict)
  const responders = new Responders(where, respond, policy.limits, {
    denied: (options.deny as { respond?: unknown } | undefined)?.respond,
    banned: options.ban?.respond,
  })
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
  options: RateLimitOptions<Request>,
  { where, policy, emitter, warnings, responders, enforcement }: ReturnType<typeof answeringParts<Request>>,
  composition: Composition,
  shared: SharedByGuards | undefined,
) {
  const { store = composition.defaultStore() } = options
  const listed = hasLists(options, store)
    ? new ListedSubjects(policy, store, options, warnings, REQUEST_LISTS)
    : undefined
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
  const limiter = requestLimiter(engine, listed, anonymous)
  if (options.priority === undefined && policy.limits.some(({ reserve }) => reserve !== undefined)) {
    invalidPolicy(where, 'priority', 'one beside reserve, as no request could use the reserve without', undefined)
  }
  const charging = chargingFor(where, options, engine, warnings)
  const permits = permitsFor(where, limiter, engine.timing)
  const { queues } = responders
  // A request that waits for room, or for the outcome of others, needs the current state.
  const fresh = queues || options.count !== undefined
  // Otherwise a refusal may still become an admission, or may not be enforced.
  const atOnce = !fresh && enforcement.coversAll
  const bans = bansFor(where, options, engine, warnings, atOnce)
  const responseBytes = responseBytesFor(where, options, engine, responders, (context, refusal) =>
    bans?.strikeLater(context, refusal),
  )
  return {
    limiter,
    engine,
    /** Undefined where there are no lists. */
    listed,
    anonymous,
    decider: new Decider(engine, { anonymous, charging, bans, queues, fresh }),
    /** Undefined where requests count by neither outcome nor body. */
    charging,
    /** Undefined where no limit counts bytes of responses. */
    responseBytes,
    /** Undefined where no limit is a `concurrency` limit. */
    permits,
    /** Undefined where the policy has no `ban`. */
    bans,
  }
}

/**
 * The limiter that users see. An argument of its methods that is a text or plain data, and no request, names an identity.
 */
export function requestLimiter<Request>(
  engine: Engine<Request>,
  listed: ListedSubjects<Request> | undefined,
  anonymous: AnonymousRequests<Request> | undefined,
): Limiter<Request> {
  const replacement = anonymous?.key && { key: anonymous.key, mayReplace: mayBeMissing }
  return new Limiter(
    new Subjects(engine.policy, { namesIdentity: isData, areTexts: false, replacement }),
    engine,
    listed,
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
