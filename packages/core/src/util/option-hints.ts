import { nearestOf } from './nearest.js'

const WINDOW = "window, in milliseconds or as a duration such as '1m'"
const SECONDS = "window, in milliseconds or as a duration such as '60s'"
const LIMIT = 'limit'
const KEY = 'key, such as byIp() or (req) => req.user.id'
const RESPOND = 'respond, such as reject({ status: 429, body })'
const VERDICT = 'onVerdict, a function of the request and its verdict'
const HEADERS = "headers, such as 'draft-6', ['draft-11', 'legacy'] or false"
const ALLOW = 'allow, such as ipRanges([…]) or a function of the request'
const DENY = 'deny, such as ipRanges([…]) or a function of the request'
const STORE = 'store: redisStore(client)'
const NAME = 'name, and redisStore(client, { prefix })'
const DELAY = 'respond: delay({ … })'
const unavailable = (decide: string) => `unavailable: { ${decide} }`
const count = (outcome: string) => `count: { only: ${outcome} }`
const enforce = (field: string) => `enforce: { ${field} }`
const body = (fields: string) => `body: { ${fields} }`

/** What to write instead of a name. It begins with the option that replaces it. */
type Names = Readonly<Record<string, string>>

/** Options that had another name until version 1.0. */
const EARLIER_NAMES: Names = {
  onUnavailable: unavailable('decide'),
  share: unavailable('share'),
  mode: enforce('mode'),
  enforcePercent: enforce('percent'),
  enforceSalt: enforce('salt'),
  reportHeaders: enforce('headers'),
  maxWait: 'count: { only, within }',
  maxBodyBytes: body('max'),
  requireLength: body('max, requireLength'),
  timeoutMs: 'timeout',
  connectTimeoutMs: 'connectTimeout',
  loadTimeoutMs: 'loadTimeout',
  lookupTimeoutMs: 'lookupTimeout',
  pollMs: 'pollEvery',
  mostHeld: 'maxOverrides',
  most: 'max',
}

/**
 * Options of other rate limiters for Node (express-rate-limit, express-slow-down, @fastify/rate-limit, koa-ratelimit,
 * rate-limiter-flexible, @nestjs/throttler), with the one that replaces them.
 */
const PEER_OPTIONS: Names = {
  windowMs: WINDOW,
  timeWindow: WINDOW,
  ttl: WINDOW,
  interval: WINDOW,
  duration: SECONDS,
  max: LIMIT,
  points: LIMIT,
  maxRequests: LIMIT,
  keyGenerator: KEY,
  id: KEY,
  getTracker: KEY,
  ipv6Subnet: 'key: byIp({ ipv6Prefix: 64 })',
  handler: 'respond: handler((…, verdict) => …), or respond: reject({ status: 429, body })',
  requestPropertyName: 'requestProperty',
  message: RESPOND,
  errorMessage: RESPOND,
  statusCode: RESPOND,
  errorResponseBuilder: RESPOND,
  onExceeded: VERDICT,
  onExceeding: VERDICT,
  onLimitReached: VERDICT,
  standardHeaders: HEADERS,
  legacyHeaders: HEADERS,
  enableDraftSpec: HEADERS,
  addHeaders: HEADERS,
  addHeadersOnExceeding: HEADERS,
  disableHeader: HEADERS,
  skipSuccessfulRequests: count("'failure'"),
  skipFailedRequests: count("'success'"),
  requestWasSuccessful: count('(status) => boolean'),
  allowList: ALLOW,
  whitelist: ALLOW,
  whiteList: ALLOW,
  blacklist: DENY,
  blackList: DENY,
  skipIf: 'skip, a function of the request',
  throttlers: 'limits, a list such as [perSecond(10), perMinute(200)]',
  db: STORE,
  driver: STORE,
  redis: STORE,
  client: STORE,
  storeClient: STORE,
  passOnStoreError: unavailable("decide: 'allow'"),
  skipOnError: unavailable("decide: 'allow'"),
  insuranceLimiter: unavailable("decide: 'local'"),
  keyPrefix: NAME,
  nameSpace: NAME,
  cache: 'store: memoryStore({ maxKeys })',
  delayAfter: DELAY,
  delayMs: DELAY,
  maxDelayMs: DELAY,
  execEvenly: 'limits: [leakyBucket({ …, queue: true })]',
  blockDuration: "ban: { after, within, for }, or limiter.block(identity, { for: '1h' })",
  maxItems: 'maxKeys',
}

interface HintOptions {
  /** Finds the name that was most likely meant. */
  readonly near?: (name: string, known: readonly string[]) => string | undefined
  /** Precedes names in the hint, such as `--`. */
  readonly prefix?: string
}

/**
 * What to use instead of an unknown name: today's name for one of an earlier version, else the nearest; undefined where none is
 * near.
 */
export function hintFor(name: string, known: readonly string[], options: HintOptions = {}): string | undefined {
  const { near = nearestOf, prefix = '' } = options
  const now = replacement(EARLIER_NAMES, name, known)
  if (now !== undefined) return `use ${prefix}${now}`
  const meant = near(name, known)
  return meant === undefined ? undefined : `did you mean ${prefix}${meant}?`
}

/** The same for an option of a limiter or store; for a peer's option, its equivalent. */
export function optionHint(field: string, known: readonly string[]): string | undefined {
  const other = replacement(PEER_OPTIONS, field, known)
  return other === undefined ? hintFor(field, known) : `use ${other}`
}

function replacement(names: Names, field: string, known: readonly string[]): string | undefined {
  const other = Object.hasOwn(names, field) ? names[field] : undefined
  const option = /^\w+/.exec(other ?? '')?.[0]
  return option && known.includes(option) ? other : undefined
}
