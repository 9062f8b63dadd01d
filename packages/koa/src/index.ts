export * from '@sluice/core'
export { type KoaRateLimitOptions, type RateLimitMiddleware, rateLimit } from './rate-limit.js'
