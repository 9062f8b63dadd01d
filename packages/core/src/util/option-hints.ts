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
const unavailable = <const T extends string>(decide: T) => `unavailable: { ${decide} }` as const
const count = <const T extends string>(outcome: T) => `count: { only: ${outcome} }` as const
const enforce = <const T extends string>(field: T) => `enforce: { ${field} }` as const
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
 *
 * Errors at run time and the types of options (`OtherNames`) say the same by it. Editors strike through what is deprecated.
 */
const PEER_OPTIONS = {
  /** @deprecated */ windowMs: WINDOW,
  /** @deprecated */ timeWindow: WINDOW,
  /** @deprecated */ ttl: WINDOW,
  /** @deprecated */ interval: WINDOW,
  /** @deprecated */ duration: SECONDS,
  /** @deprecated */ max: LIMIT,
  /** @deprecated */ points: LIMIT,
  /** @deprecated */ maxRequests: LIMIT,
  /** @deprecated */ keyGenerator: KEY,
  /** @deprecated */ id: KEY,
  /** @deprecated */ getTracker: KEY,
  /** @deprecated */ ipv6Subnet: 'key: byIp({ ipv6Prefix: 64 })',
  /** @deprecated */ handler: 'respond: handler((…, verdict) => …), or respond: reject({ status: 429, body })',
  /** @deprecated */ requestPropertyName: 'requestProperty',
  /** @deprecated */ message: RESPOND,
  /** @deprecated */ errorMessage: RESPOND,
  /** @deprecated */ statusCode: RESPOND,
  /** @deprecated */ errorResponseBuilder: RESPOND,
  /** @deprecated */ onExceeded: VERDICT,
  /** @deprecated */ onExceeding: VERDICT,
  /** @deprecated */ onLimitReached: VERDICT,
  /** @deprecated */ standardHeaders: HEADERS,
  /** @deprecated */ legacyHeaders: HEADERS,
  /** @deprecated */ enableDraftSpec: HEADERS,
  /** @deprecated */ addHeaders: HEADERS,
  /** @deprecated */ addHeadersOnExceeding: HEADERS,
  /** @deprecated */ disableHeader: HEADERS,
  /** @deprecated */ skipSuccessfulRequests: count("'failure'"),
  /** @deprecated */ skipFailedRequests: count("'success'"),
  /** @deprecated */ requestWasSuccessful: count('(status) => boolean'),
  /** @deprecated */ allowList: ALLOW,
  /** @deprecated */ whitelist: ALLOW,
  /** @deprecated */ whiteList: ALLOW,
  /** @deprecated */ blacklist: DENY,
  /** @deprecated */ blackList: DENY,
  /** @deprecated */ skipIf: 'skip, a function of the request',
  /** @deprecated */ throttlers: 'limits, a list such as [perSecond(10), perMinute(200)]',
  /** @deprecated */ db: STORE,
  /** @deprecated */ driver: STORE,
  /** @deprecated */ redis: STORE,
  /** @deprecated */ client: STORE,
  /** @deprecated */ storeClient: STORE,
  /** @deprecated */ passOnStoreError: unavailable("decide: 'allow'"),
  /** @deprecated */ skipOnError: unavailable("decide: 'allow'"),
  /** @deprecated */ insuranceLimiter: unavailable("decide: 'local'"),
  /** @deprecated */ keyPrefix: NAME,
  /** @deprecated */ nameSpace: NAME,
  /** @deprecated */ cache: 'store: memoryStore({ maxKeys })',
  /** @deprecated */ delayAfter: DELAY,
  /** @deprecated */ delayMs: DELAY,
  /** @deprecated */ maxDelayMs: DELAY,
  /** @deprecated */ execEvenly: 'limits: [leakyBucket({ …, queue: true })]',
  /** @deprecated */ blockDuration: "ban: { after, within, for }, or limiter.block(identity, { for: '1h' })",
  /** @deprecated */ maxItems: 'maxKeys',
  /** @deprecated */ prefix: 'store: redisStore(client, { prefix })',
  /** @deprecated */ burst: 'limits: [gcra({ limit, window, burst })]',
  /** @deprecated */ algorithm: 'limits: [gcra({ limit, window })], or another algorithm by its name',
  /** @deprecated */ concurrency: 'limits: [concurrency({ limit })]',
  /** @deprecated */ queue: 'respond: queue({ … })',
  /** @deprecated */ trustProxy: "key: byIp(), by the framework's own setting, such as app.set('trust proxy', 1)",
  /** @deprecated */ failOpen: unavailable("decide: 'allow'"),
  /** @deprecated */ dryRun: enforce("mode: 'report'"),
  /** @deprecated */ weight: 'cost, a number or a function of the request',
} as const satisfies Names

type PeerOptions = typeof PEER_OPTIONS

/** The names of others that one of these options replaces. */
type Replaced<Known extends string> = {
  [Name in keyof PeerOptions]: PeerOptions[Name] extends Known | `${Known},${string}` | `${Known}:${string}`
    ? Name
    : never
}[keyof PeerOptions]

// Of type parameters, as `Pick` is: each name then has the docstring of the table, by which editors strike it through.
type Instead<Table, Name extends keyof Table> = { readonly [Each in Name]?: `use ${Table[Each] & string}` }

/** Options of other libraries, beside these options: the type of each says what to use instead. */
export type OtherNames<Known extends string> = Instead<PeerOptions, Exclude<Replaced<Known>, Known>>

/** What to write in options for which something else is often written. */
export const FORMS = {
  limits: 'slidingLog({ limit, window }), or another of its constructors',
  key: 'byIp(), byUser((req) => req.user?.id) or another function of the request',
  window: 'whole milliseconds or a duration such as "30s" (units: ms, s, m, h, d)',
  ban: "{ after: 3, within: '1h', for: ['10m', '1h'] }",
  unavailable: "{ decide: 'allow' }",
  enforce: "{ mode: 'report' }",
  store: 'memoryStore() or redisStore(client)',
} as const

declare const use: unique symbol

/**
 * The type of an option, or no value: compilers print it in their errors, with what to write. Those who read the option find
 * all that its type has.
 */
export type Use<Form extends string, Option> = Option & { readonly [use]: Form }

interface HintOptions {
  /** Finds the name that was most likely meant. */
  readonly near?: (name: string, known: readonly string[]) => string | undefined
  /** Precedes names in the hint, such as `--`. */
  readonly prefix?: string
}

/**
 * What to use instead of an unknown name: today's name for one of an earlier version, else the nearest; undefined if none is
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
