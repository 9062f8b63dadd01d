import { type LimitForm, SluiceError, type Verdict } from '@sluice/core'
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  RouteOptions as FastifyRouteOptions,
  HookHandlerDoneFunction,
} from 'fastify'
import fp from 'fastify-plugin'
import { withoutDetails } from './failure.js'
import { type FastifyRateLimitOptions, type RateLimitHook, rateLimitHook } from './hook.js'
import { checkedPhase, type Phase } from './phase.js'
import { type RouteLimiter, RouteLimiters, type RouteOptions, routeName } from './routes.js'

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
   * The hook of Fastify in which limiters run: `'onRequest'`, `'preParsing'`, `'preValidation'` or `'preHandler'`. From
   * `preValidation` on the body is parsed and can be part of a key; by then it has been read. @default 'onRequest'
   */
  readonly hook?: Phase
  /**
   * Whether registering it waits until the store decides, or is known to be away: at most Fastify's `pluginTimeout` less a
   * second. @default true
   */
  readonly waitForStore?: boolean
}

/** So much of Fastify's own patience is left to other plugins. */
const TO_SPARE_MS = 1000

/** What a route's `config.rateLimit` takes: any of the options, at least one. What it does not name is the plugin's. */
export type RouteRateLimitOptions = AtLeastOne<RouteOptions>

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
 * Limiters of routes use this one's options where they name none, except its name and what an option of their own
 * excludes; each counts by itself, but those of one `group` are one.
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
  {
    global = true,
    waitForStore = true,
    hook: phase = 'onRequest',
    ...options
  }: RateLimitPluginOptions & (LimitForm | NotGlobal),
): Promise<void> {
  if (typeof global !== 'boolean') throw new SluiceError('INVALID_POLICY', 'rateLimit: global: expected true or false')
  if (typeof waitForStore !== 'boolean') {
    throw new SluiceError('INVALID_POLICY', 'rateLimit: waitForStore: expected true or false')
  }
  checkedPhase(phase)
  const hook = global ? rateLimitHook(options) : undefined
  // A second registration adds a limit; routes are looked after by the first.
  const own = app.hasDecorator('rateLimit') ? undefined : decorate(app, options, phase, hook?.limiter)

  // For all four hooks, of which one takes the body as well.
  const rateLimit = (request: FastifyRequest, reply: FastifyReply, ...rest: unknown[]): void => {
    const done = rest.at(-1) as HookHandlerDoneFunction
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
  }
  app.addHook(phase as 'onRequest', rateLimit)
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
 * Returns what finds the limiter of a route's own that runs in the plugin's hook.
 */
function decorate(
  app: FastifyInstance,
  options: FastifyRateLimitOptions,
  phase: Phase,
  limiter: RateLimitHook['limiter'] | undefined,
): (own: RouteRateLimitOptions, request: FastifyRequest) => RateLimitHook | undefined {
  const limiters = new RouteLimiters(options, phase)
  app.decorateRequest('rateLimit', undefined)
  const { requestProperty = 'rateLimit' } = options
  // Of one shape for all requests.
  if (!app.hasRequestDecorator(requestProperty)) app.decorateRequest(requestProperty, undefined)
  const forRoute = (own: FastifyRateLimitOptions) => limiters.hookFor(own, 'route')
  app.decorate('rateLimit', Object.assign(forRoute, { limiter }))
  app.addHook('onRoute', (route: RouteHooks) => {
    const own = route.config?.rateLimit
    if (!own) return
    // The HEAD route that Fastify adds beside GET brings the same object, and so the same limiter.
    const found = limiters.find(own) ?? limiters.add(own, route.url)
    // Before the route's own hooks of that name, after those of the app.
    if (found.phase !== phase) addFirst(route, found)
  })
  return (own, request) => {
    // Fastify calls no hook for routes that were added before, so those show with their first request.
    const found = limiters.find(own) ?? limiters.add(own, routeName(request))
    if (found.phase === phase) return found.hook
    if (added.has(own)) return undefined
    throw new SluiceError(
      'INVALID_POLICY',
      `rateLimit: hook: expected ${phase} for a route that was added before the plugin had loaded, got ${found.phase} (await app.register)`,
    )
  }
}

type RouteHooks = FastifyRouteOptions & { [Hook in Phase]?: unknown }

/** Options of routes whose limiter is among the route's own hooks. */
const added = new WeakSet<object>()

function addFirst(route: RouteHooks, { phase, hook }: RouteLimiter): void {
  const hooks = [route[phase] ?? []].flat()
  // The HEAD route comes with the hooks of its GET route.
  if (!hooks.includes(hook)) route[phase] = [hook, ...hooks] as never
  added.add(route.config?.rateLimit as object)
}
