/**
 * `@sluice/fastify/beside`: the plugin beside @fastify/rate-limit in one app, during a gradual move. Apps, requests and routes have
 * `sluice` where the other plugin has `rateLimit`.
 */
import type { Verdict } from '@sluice/core'
import { pluginOf, type RateLimitDecorator, type RateLimitPlugin, type RouteRateLimitOptions } from './plugin.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The verdict of the last limiter of Sluice that decided on this request. */
    sluice: Verdict | undefined
  }
  interface FastifyInstance {
    sluice: RateLimitDecorator
  }
  interface FastifyContextConfig {
    /** This route's own limiter of Sluice instead of the global one; `false` for none. The same object is the same limiter. */
    sluice?: RouteRateLimitOptions | false
  }
}

export * from '@sluice/core'
export type { RateLimitDecorator, RateLimitPlugin, RateLimitPluginOptions, RouteRateLimitOptions } from './plugin.js'

/**
 * The plugin of `@sluice/fastify` under the name `sluice`: `config.sluice` of routes, `app.sluice`, `request.sluice`.
 *
 * @example await app.register(rateLimit, { global: false }); app.get('/', { config: { rateLimit: false, sluice: { limit: 5, window: '1m' } } }, …)
 * @throws SluiceError `INVALID_POLICY` as `@sluice/fastify`
 */
export const rateLimit: RateLimitPlugin = pluginOf('sluice')
