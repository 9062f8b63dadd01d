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
const unavailable = (mode: string) => ({ use: 'onUnavailable', how: `onUnavailable: '${mode}'` })
const count = (outcome: string) => ({ use: 'count', how: `count: ${outcome}` })

/**
 * Options of other rate limiters for Node (express-rate-limit, express-slow-down, @fastify/rate-limit, koa-ratelimit,
 * rate-limiter-flexible, @nestjs/throttler), and what to use instead. `use` is the option that replaces them.
 */
const PEER_OPTIONS: Readonly<Record<string, { readonly use: string; readonly how: string }>> = {
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
  passOnStoreError: unavailable('allow'),
  skipOnError: unavailable('allow'),
  insuranceLimiter: unavailable('local'),
  keyPrefix: { use: 'name', how: 'name, and redisStore(client, { prefix })' },
  nameSpace: { use: 'name', how: 'name, and redisStore(client, { prefix })' },
  cache: { use: 'store', how: 'store: memoryStore({ maxKeys })' },
  delayAfter: DELAY,
  delayMs: DELAY,
  maxDelayMs: DELAY,
  execEvenly: { use: 'limits', how: 'limits: [leakyBucket({ …, queue: true })]' },
  blockDuration: { use: 'limits', how: "limiter.block(identity, { for: '1h' })" },
  timeout: { use: 'timeoutMs', how: 'timeoutMs' },
  maxItems: { use: 'maxKeys', how: 'maxKeys' },
}

/** What to use instead of an unknown option: for an option of a peer its equivalent, for a misspelling the nearest. */
export function hintFor(field: string, known: readonly string[]): string | undefined {
  const peer = Object.hasOwn(PEER_OPTIONS, field) ? PEER_OPTIONS[field] : undefined
  if (peer && known.includes(peer.use)) return `use ${peer.how}`
  const nearest = nearestOf(field, known)
  return nearest === undefined ? undefined : `did you mean ${nearest}?`
}
