export * from '@sluice/core'
export { type ExpressHandler, RateLimited } from './decorator.js'
export { handler, type RefusalHandler } from './handler.js'
export { type ExpressRateLimitOptions, type RateLimitHandler, rateLimit } from './rate-limit.js'
