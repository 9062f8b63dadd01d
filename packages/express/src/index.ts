export * from '@sluice/core'
export { type ExpressRateLimitOptions, type RateLimitHandler, rateLimit } from './rate-limit.js'
