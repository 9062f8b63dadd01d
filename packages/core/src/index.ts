export type { Duration } from './duration.js'
export { SluiceError, type SluiceErrorCode } from './errors.js'
export { type HttpContext, headerText, pathOf, type RawResponse, RequestContext } from './http/context.js'
export { enforce } from './http/enforce.js'
export type { EnforcementOptions } from './http/enforcement.js'
export { asFailure } from './http/failure.js'
export { createGuard, type Guard, type Outcome } from './http/guard.js'
export type { LegacyReset } from './http/headers/single.js'
export type { HeaderFormat, HeadersOption } from './http/headers/table.js'
export type { HeaderField } from './http/headers/writer.js'
export type { AnonymousOption } from './http/identity/anonymous.js'
export {
  byCookie,
  byHeader,
  byMethod,
  byPath,
  byUser,
  type CookieOptions,
  everyone,
  hashedKey,
  type SecretOptions,
  type UserOptions,
} from './http/identity/extractors.js'
export { byIp, type IpOptions } from './http/identity/ip.js'
export { warnOfOpenProxy } from './http/identity/open-proxy.js'
export { byRoute, type RouteOptions } from './http/identity/route.js'
export { noSignedCookies, signedCookieText } from './http/identity/signed-cookie.js'
export type { InvalidOption } from './http/invalid.js'
export type { LinedUp, TurnOptions } from './http/line-up.js'
export { decoratorFor, type HandlerDecorator, limiterOf } from './http/method-decorator.js'
export { RATE_LIMIT_OPTIONS, type RateLimitOptions } from './http/options.js'
export { type DegradeOptions, degrade } from './http/responders/degrade.js'
export { type DelayOptions, delay } from './http/responders/delay.js'
export { type QueueOptions, queue } from './http/responders/queue.js'
export { type RejectBody, type RejectOptions, reject } from './http/responders/reject.js'
export type {
  Action,
  Ending,
  Later,
  Refused,
  Reply,
  Responder,
  ResponderTraits,
} from './http/responders/responder.js'
export { type ShadowBody, type ShadowOptions, shadow } from './http/responders/shadow.js'
export { type TarpitOptions, tarpit } from './http/responders/tarpit.js'
export { type ThrottleOptions, throttle } from './http/responders/throttle.js'
export { runBehind } from './http/run-behind.js'
export type { Identity, IdentityByKind, KeyValue } from './identity.js'
export { compose, keyed } from './keyed.js'
export { type BlockOptions, type CostOptions, createLimiter, Limiter, type LimiterOptions } from './limiter.js'
export {
  type GcraOptions,
  gcra,
  type LeakyBucketOptions,
  leakyBucket,
  type TokenBucketOptions,
  tokenBucket,
} from './limits/buckets.js'
export type { RateOptions } from './limits/common.js'
export { type ConcurrencyOptions, concurrency } from './limits/concurrency.js'
export { type FixedWindowOptions, fixedWindow } from './limits/fixed-window.js'
export type { LeasableOptions, LeaseOptions } from './limits/lease.js'
export type {
  Algorithm,
  CommonOptions,
  KeyFunction,
  KeyTraits,
  Limit,
  OrFunction,
  UnitOptions,
} from './limits/limit.js'
export type { Reserve } from './limits/reserve.js'
export { perDay, perHour, perMinute, perSecond, slidingLog } from './limits/sliding-log.js'
export { type SlidingWindowOptions, slidingWindow } from './limits/sliding-window.js'
export { type MemoryStoreOptions, memoryStore } from './memory/store.js'
export type { PolicyOptions } from './policy.js'
export { type PriorityOption, priorityOf } from './priority.js'
export type { StoreState } from './redis/breaker.js'
export { type RedisStore, type RedisStoreOptions, redisStore } from './redis/store.js'
export type { Answer, Ask, BlockReport, Cell, LeaseTerms, Op, Plan, QuotaUnit, ResolvedLimit, Store } from './store.js'
export type { UnavailableOptions } from './unavailable.js'
export { type LimitReport, type RefusalReason, Verdict, type VerdictKind } from './verdict.js'
export type { AcquireOptions } from './waiting-lines.js'
