import type { Verdict } from '@sluice/core'
import { pluginOf, type RateLimitDecorator, type RateLimitPlugin, type RouteRateLimitOptions } from './plugin.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The verdict of the last limiter that decided on this request. */
    rateLimit: Verdict | undefined
  }
  interface FastifyInstance {
    rateLimit: RateLimitDecorator
  }
  interface FastifyContextConfig {
    /** This route's own limiter instead of the global one; `false` for none. The same object is the same limiter. */
    rateLimit?: RouteRateLimitOptions | false
  }
}

/**
 * Limits every route of a Fastify app, unknown paths too, except where a route has its own `config.rateLimit`.
 * Limiters of routes use this one's options where they name none, except its name and options that one of their own excludes.
 * Each counts by itself, but those of one `group` are one.
 *
 * Awaited before routes are added, it checks their options at once. A route that was there before it has loaded, also
 * one of an earlier plugin, gets its limiter at its first request.
 *
 * @example await app.register(rateLimit, { limit: 100, window: '1m' })
 * @throws SluiceError `INVALID_POLICY` when registered, or when a route is added; of a route that was there before,
 * to Fastify's error handler at each of its requests
 */
export const rateLimit: RateLimitPlugin = pluginOf('rateLimit')
