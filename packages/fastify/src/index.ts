export * from '@sluice/core'
export { type FastifyHandler, RateLimited } from './decorator.js'
export type { FastifyRateLimitOptions, RateLimitHook } from './hook.js'
export { type RateLimitDecorator, type RateLimitPluginOptions, rateLimit } from './rate-limit.js'
