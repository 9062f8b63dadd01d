export * from '@sluice/core'
export { type FastifyHandler, RateLimited } from './decorator.js'
export { handler, type RefusalHandler } from './handler.js'
export type { FastifyRateLimitOptions, RateLimitHook } from './hook.js'
export type {
  RateLimitDecorator,
  RateLimitPlugin,
  RateLimitPluginOptions,
  RouteRateLimitOptions,
} from './plugin.js'
export { rateLimit } from './rate-limit.js'
