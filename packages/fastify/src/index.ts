export * from '@sluice/core'
export type { FastifyRateLimitOptions, RateLimitHook } from './hook.js'
export { type FastifyPluginOptions, rateLimit } from './rate-limit.js'
