import { nearestOf } from './nearest.js'

const WINDOW = { use: 'window', how: "window, in milliseconds or as a duration such as '1m'" }
const SECONDS = { use: 'window', how: "window, in milliseconds or as a duration such as '60s'" }
const LIMIT = { use: 'limit', how: 'limit' }
const KEY = { use: 'key', how: 'key, such as byIp() or (req) => req.user.id' }
const RESPOND = { use: 'respond', how: 'respond, such as reject({ status: 429, body })' }
const HEADERS = { use: 'headers', how: "headers, such as 'draft-6', ['draft-11', 'legacy'] or false" }
const SKIP = { use: 'skip', how: 'skip, a function of the request' }
const ALLOW = { use: 'allow', how: 'allow, such as ipRanges([…]) or a function of the request' }
const DENY = { use: 'deny', how: 'deny, such as ipRanges([…]) or a function of the request' }
const STORE = { use: 'store', how: 'store: redisStore(client)' }
const DELAY = { use: 'respond', how: 'respond: delay({ … })' }
const unavailable = (decide: string) => ({ use: 'unavailable', how: `unavailable: { ${decide} }` })
const count = (outcome: string) => ({ use: 'count', how: `count: { only: ${outcome} }` })
const enforce = (field: string) => ({ use: 'enforce', how: `enforce: { ${field} }` })
const body = (fields: string) => ({ use: 'body', how: `body: { ${fields} }` })

type Names = Readonly<Record<string, { readonly use: string; readonly how: string }>>

/** Options that had another name until version 1.0. `use` is the option that replaces them, `how` its form. */
const EARLIER_NAMES: Names = {
  onUnavailable: unavailable('decide'),
  share: unavailable('share'),
  mode: enforce('mode'),
  enforcePercent: enforce('percent'),
  enforceSalt: enforce('salt'),
  reportHeaders: enforce('headers'),
  maxWait: { use: 'count', how: 'count: { only, within }' },
  maxBodyBytes: body('max'),
  requireLength: body('max, requireLength'),
  timeoutMs: { use: 'timeout', how: 'timeout' },
  connectTimeoutMs: { use: 'connectTimeout', how: 'connectTimeout' },
  loadTimeoutMs: { use: 'loadTimeout', how: 'loadTimeout' },
  lookupTimeoutMs: { use: 'lookupTimeout', how: 'lookupTimeout' },
  pollMs: { use: 'pollEvery', how: 'pollEvery' },
  mostHeld: { use: 'maxOverrides', how: 'maxOverrides' },
  most: { use: 'max', how: 'max' },
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
  ipv6Subnet: { use: 'key', how: 'key: byIp({ ipv6Prefix: 64 })' },
  handler: { use: 'respond', how: 'respond: handler((…, verdict) => …), or respond: reject({ status: 429, body })' },
  requestPropertyName: { use: 'requestProperty', how: 'requestProperty' },
  message: RESPOND,
  errorMessage: RESPOND,
  statusCode: RESPOND,
  errorResponseBuilder: RESPOND,
  onExceeded: { use: 'onVerdict', how: 'onVerdict, a function of the request and its verdict' },
  onExceeding: { use: 'onVerdict', how: 'onVerdict, a function of the request and its verdict' },
  onLimitReached: { use: 'onVerdict', how: 'onVerdict, a function of the request and its verdict' },
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
  skipIf: SKIP,
  throttlers: { use: 'limits', how: 'limits, a list such as [perSecond(10), perMinute(200)]' },
  db: STORE,
  driver: STORE,
  redis: STORE,
  client: STORE,
  storeClient: STORE,
  passOnStoreError: unavailable("decide: 'allow'"),
  skipOnError: unavailable("decide: 'allow'"),
  insuranceLimiter: unavailable("decide: 'local'"),
  keyPrefix: { use: 'name', how: 'name, and redisStore(client, { prefix })' },
  nameSpace: { use: 'name', how: 'name, and redisStore(client, { prefix })' },
  cache: { use: 'store', how: 'store: memoryStore({ maxKeys })' },
  delayAfter: DELAY,
  delayMs: DELAY,
  maxDelayMs: DELAY,
  execEvenly: { use: 'limits', how: 'limits: [leakyBucket({ …, queue: true })]' },
  blockDuration: { use: 'limits', how: "limiter.block(identity, { for: '1h' })" },
  maxItems: { use: 'maxKeys', how: 'maxKeys' },
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
  return other && known.includes(other.use) ? other.how : undefined
}
