export * from '@sluice/core'
export { type KoaHandler, RateLimited } from './decorator.js'
export { handler, type RefusalHandler } from './handler.js'
export { type KoaRateLimitOptions, type RateLimitMiddleware, rateLimit } from './rate-limit.js'
