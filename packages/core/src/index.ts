export { type Duration } from './duration.js'
export { SluiceError, type SluiceErrorCode } from './errors.js'
export type { HttpContext } from './http/context.js'
export {
  type GcraOptions,
  gcra,
  type LeakyBucketOptions,
  leakyBucket,
  type TokenBucketOptions,
  tokenBucket,
} from './limits/buckets.js'
export { type RateOptions } from './limits/common.js'
export { type ConcurrencyOptions, concurrency } from './limits/concurrency.js'
export { type FixedWindowOptions, fixedWindow } from './limits/fixed-window.js'
export type { Algorithm, CommonOptions, KeyFunction, Limit, OrFunction } from './limits/limit.js'
export { perDay, perHour, perMinute, perSecond, slidingLog } from './limits/sliding-log.js'
export { type SlidingWindowOptions, slidingWindow } from './limits/sliding-window.js'
export { type BlockOptions, type CostOptions, createLimiter, Limiter, type LimiterOptions } from './limiter.js'
export { type MemoryStoreOptions, memoryStore } from './memory/store.js'
export type { PolicyOptions } from './policy.js'
export { type RedisStoreOptions, redisStore } from './redis/store.js'
export type { Answer, Ask, BlockReport, Cell, Op, Plan, ResolvedLimit, Store } from './store.js'
export { type LimitReport, type RefusalReason, Verdict } from './verdict.js'
export type { AcquireOptions } from './waiting-lines.js'
