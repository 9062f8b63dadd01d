import { type LimitForm, SluiceError, type Verdict } from '@sluice/core'
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { withoutDetails } from './failure.js'
import { type FastifyRateLimitOptions, type RateLimitHook, rateLimitHook } from './hook.js'
import { inherit } from './inherit.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** What the limiter that decided last on this request said. */
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

export interface RateLimitPluginOptions extends FastifyRateLimitOptions {
  /** Whether routes that say nothing are limited, and unknown ones. With `false`, no limit is needed here. @default true */
  readonly global?: boolean
  /**
   * Whether registering it waits until the store decides, or is known to be away: at most Fastify's `pluginTimeout` less a
   * second. @default true
   */
  readonly waitForStore?: boolean
}

/** So much of Fastify's own patience is left to other plugins. */
const TO_SPARE_MS = 1000

/** What a route's `config.rateLimit` takes: any of the options, at least one. */
export type RouteRateLimitOptions = AtLeastOne<FastifyRateLimitOptions>

/**
 * Options, of which one is named. With none required the compiler would take an object of nothing but misspelt ones, as the
 * types of routes allow for properties that they do not know.
 */
type AtLeastOne<Options> = { [Option in keyof Options]-?: Options & Required<Pick<Options, Option>> }[keyof Options]

/** Without a global limiter the plugin needs no limits. */
interface NotGlobal {
  readonly global: false
}

export interface RateLimitDecorator {
  /**
   * A limiter as a hook for one route, beside the global one: `{ onRequest: app.rateLimit({ … }) }`, or
   * `preHandler` where it needs the body.
   */
  (options: FastifyRateLimitOptions & LimitForm): RateLimitHook
  /** The global limiter: to peek, reset, block and unblock; undefined with `global: false`. */
  readonly limiter: RateLimitHook['limiter'] | undefined
}

/**
 * Limits every route of a Fastify app, unknown paths too, except where a route has its own `config.rateLimit`.
 * Limiters of routes use this one's options where they name none, except those that say what the limits are, and
 * those that an option of their own excludes.
 *
 * Awaited before routes are added, it checks their options at once. A route that was there before it has loaded gets
 * its limiter at its first request. Plugins that were there before it are out of its reach, as with every hook.
 *
 * @example await app.register(rateLimit, { limit: 100, window: '1m' })
 * @throws SluiceError `INVALID_POLICY` when registered, or when a route is added; of a route that was there before,
 * to Fastify's error handler at each of its requests
 */
export const rateLimit = fp(plugin, { name: '@sluice/fastify', fastify: '5.x' })

async function plugin(
  app: FastifyInstance,
  { global = true, waitForStore = true, ...options }: RateLimitPluginOptions & (LimitForm | NotGlobal),
): Promise<void> {
  if (typeof global !== 'boolean') throw new SluiceError('INVALID_POLICY', 'rateLimit: global: expected true or false')
  if (typeof waitForStore !== 'boolean') {
    throw new SluiceError('INVALID_POLICY', 'rateLimit: waitForStore: expected true or false')
  }
  const hook = global ? rateLimitHook(options) : undefined
  // A second registration adds a limit; routes are looked after by the first.
  const own = app.hasDecorator('rateLimit') ? undefined : decorate(app, options, hook?.limiter)

  app.addHook('onRequest', function rateLimit(request, reply, done) {
    const config = request.routeOptions.config.rateLimit
    let chosen = config === undefined ? hook : undefined
    if (config) {
      try {
        chosen = own?.(config, request)
      } catch (error) {
        done(withoutDetails(error) as Error)
        return
      }
    }
    if (chosen) chosen(request, reply, done)
    else done()
  })
  if (waitForStore) await storeReady(app, options.store)
}

/** A store that is away must not keep the server from starting: it decides by `onUnavailable` until it is there. */
async function storeReady(app: FastifyInstance, store: FastifyRateLimitOptions['store']): Promise<void> {
  if (!store?.ready) return
  const { pluginTimeout = 10_000 } = app.initialConfig
  let timer: NodeJS.Timeout | undefined
  const patience = new Promise((resolve) => {
    // With 0 Fastify waits for as long as it takes.
    if (pluginTimeout > 0) timer = setTimeout(resolve, Math.max(0, pluginTimeout - TO_SPARE_MS))
  })
  await Promise.race([store.ready(), patience])
  clearTimeout(timer)
}

/**
 * Adds what routes use, and makes their limiters as they are added, so that mistakes show before traffic does.
 * Returns what finds the limiter of a route's own by its options.
 */
function decorate(
  app: FastifyInstance,
  options: FastifyRateLimitOptions,
  limiter: RateLimitHook['limiter'] | undefined,
): (own: FastifyRateLimitOptions, request: FastifyRequest) => RateLimitHook {
  const {
    name = 'default',
    limit: _limit,
    window: _window,
    limits: _limits,
    onDeny: _onDeny,
    ban: _ban,
    ...others
  } = options
  const { tiers: _tiers, tier: _tier, priority: _priority, ...defaults } = others
  const hooks = new Map<object, RateLimitHook>()
  const taken = new Set([name])
  const hookFor = (own: FastifyRateLimitOptions, where: string) => {
    const merged = inherit(defaults, own)
    // Limiters of one name on one store may be one limiter, so on the shared store each has a name of its own.
    const isAlone = own.store !== undefined || defaults.store === undefined
    if (own.name !== undefined || isAlone) return rateLimitHook(merged)
    const base =
      where
        .replace(/^\/|\/$/g, '')
        .replace(/[^A-Za-z0-9_-]+/g, '_')
        .slice(0, 56) || 'root'
    let free = base
    for (let n = 2; taken.has(free); n++) free = `${base}-${n}`
    const hook = rateLimitHook({ ...merged, name: free })
    taken.add(free)
    return hook
  }
  const addHookOf = (own: FastifyRateLimitOptions, where: string) => {
    const hook = hookFor(own, where)
    hooks.set(own, hook)
    return hook
  }

  app.decorateRequest('rateLimit', undefined)
  const forRoute = (own: FastifyRateLimitOptions) => hookFor(own, 'route')
  app.decorate('rateLimit', Object.assign(forRoute, { limiter }))
  app.addHook('onRoute', (route: RouteOptions) => {
    const own = route.config?.rateLimit
    // The HEAD route that Fastify adds beside GET brings the same object, and so the same limiter.
    if (own && !hooks.has(own)) addHookOf(own, route.url)
  })
  // Fastify tells nobody of routes that were added before, so those show with their first request.
  return (own, request) => hooks.get(own) ?? addHookOf(own, routeName(request))
}

/** Of one route alone: requests come in another order in each process, where a number would be another route's. */
function routeName({ routeOptions: { url = '', method } }: FastifyRequest): string {
  const methods = [method].flat().map((each) => (each === 'HEAD' ? 'GET' : each))
  return [url, ...new Set(methods)].join(' ')
}
