import { type LimitForm, SluiceError } from '@sluice/core'
import { propertyOf, refusePolluted, refuseUncalled } from '@sluice/core/http'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions as FastifyRouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { withoutDetails } from './failure.js'
import { doneOf, type FastifyRateLimitOptions, type RateLimitHook, rateLimitHook } from './hook.js'
import { checkedPhase, isLate, type Phase } from './phase.js'
import { checkedOptions, type RouteLimiter, RouteLimiters, type RouteOptions, routeName } from './routes.js'

export interface RateLimitPluginOptions extends FastifyRateLimitOptions {
  /** Whether routes without options are limited, and unknown ones. With `false`, no limit is needed here. @default true */
  readonly global?: boolean
  /**
   * The hook of Fastify in which limiters run: `'onRequest'`, `'preParsing'`, `'preValidation'` or `'preHandler'`.
   *
   * From `preValidation` on the body is parsed and can be part of a key; by then it has been read. From there on, the
   * limiter of a route runs after the application's hooks of that name and the route's own, wherever these are added.
   * In earlier hooks it runs before hooks that are added later.
   * @default 'onRequest'
   */
  readonly hook?: Phase
  /**
   * Whether registering it waits until the store decides, or is known to be away.
   *
   * That takes at most Fastify's `pluginTimeout` less a second.
   * @default true
   */
  readonly waitForStore?: boolean
}

/** Options of the plugin and of routes beside those of a limiter. `rateLimit` is that of a route's `config`. */
const OF_FASTIFY = ['global', 'hook', 'waitForStore', 'group', 'rateLimit']

/** The part of Fastify's own timeout that is left to other plugins. */
const TO_SPARE_MS = 1000

/** The options of a route's `config.rateLimit`: at least one. The plugin's apply where it names none. */
export type RouteRateLimitOptions = AtLeastOne<RouteOptions>

/**
 * Options, of which one is named. With none required the compiler would take an object of nothing but misspelt ones, as the
 * types of routes allow for properties that they do not know.
 */
type AtLeastOne<Options> = { [Option in keyof Options]-?: Options & Required<Pick<Options, Option>> }[keyof Options]

/** Without a global limiter the plugin needs no limits. */
export interface NotGlobal {
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

/** The plugin, which decorates apps and requests and configures routes under this name. */
export function pluginOf(name: string): RateLimitPlugin {
  return fp((app: FastifyInstance, options: Registered) => register(app, options, name), {
    name: '@sluice/fastify',
    fastify: '5.x',
  })
}

type Registered = RateLimitPluginOptions & (LimitForm | NotGlobal)

/** A plugin for `app.register`. */
export type RateLimitPlugin = (app: FastifyInstance, options: Registered) => Promise<void>

/** On the decorators of apps that this plugin has made, also by another copy of it. */
const OURS = Symbol.for('@sluice/fastify')

async function register(app: FastifyInstance, given: Registered, name: string): Promise<void> {
  // As for a middleware of another framework: called with its options, or as a hook with a request.
  if (typeof app?.addHook !== 'function') {
    throw new SluiceError(
      'INVALID_POLICY',
      'rateLimit is a plugin: write app.register(rateLimit, { limit: 100, window: "1m" })',
    )
  }
  const { global = true, waitForStore = true, hook: phase = 'onRequest', requestProperty = name, ...rest } = given
  const options = { ...rest, requestProperty }
  refusePolluted('rateLimit', [...OF_FASTIFY, name])
  refuseOtherPlugin(app, name)
  if (typeof global !== 'boolean') throw new SluiceError('INVALID_POLICY', 'rateLimit: global: expected true or false')
  if (typeof waitForStore !== 'boolean') {
    throw new SluiceError('INVALID_POLICY', 'rateLimit: waitForStore: expected true or false')
  }
  checkedPhase(phase)
  const everywhere: RouteLimiter | undefined = global ? { phase, hook: rateLimitHook(options) } : undefined
  // A second registration adds a limit. The first one handles routes.
  const limiters = app.hasDecorator(name) ? undefined : new RouteLimiters(options, phase)
  if (limiters) decorate(app, options, limiters, everywhere?.hook.limiter, name)
  const limiterOf = (own: unknown, where: () => string) => (own === undefined ? everywhere : limiters?.of(own, where))
  // On the configuration of a route whose limiter is among its own hooks. Fastify copies it for each route.
  const isPlaced = Symbol('rateLimit')

  // Limiters of routes are made as these are added, so that mistakes show before traffic does.
  app.addHook('onRoute', (route: RouteHooks) => {
    const limiter = limiterOf(ownLimit(route.config, name), () => route.url)
    if (!limiter || (limiter.phase === phase && !isLate(phase))) return
    place(route, limiter)
    route.config = { ...route.config, [isPlaced]: true } as NonNullable<RouteHooks['config']>
  })

  // For unknown paths, for routes that were added before, and for all in hooks where floods end before the application's own.
  const limiterFor = (own: unknown, request: FastifyRequest) => {
    const limiter = limiterOf(own, () => routeName(request))
    if (limiter) checkReachable(limiter.phase, phase)
    return limiter
  }
  app.addHook(phase as 'onRequest', limitingHook({ name, isPlaced, everywhere, limiterFor }))
  if (waitForStore) await storeReady(app, options.store)
}

interface LimitingHook {
  /** The name of the routes' option. */
  readonly name: string
  /** On the configuration of routes that have a limiter among their own hooks. */
  readonly isPlaced: symbol
  /** The global limiter. */
  readonly everywhere: RouteLimiter | undefined
  /** That of a route with an option of its own, for a request. */
  readonly limiterFor: (own: unknown, request: FastifyRequest) => RouteLimiter | undefined
}

function limitingHook({ name, isPlaced, everywhere, limiterFor }: LimitingHook) {
  return (request: FastifyRequest, reply: FastifyReply, third: unknown, fourth?: unknown): void => {
    const done = doneOf(third, fourth)
    const { config } = request.routeOptions
    if (isPlaced in config) {
      done()
      return
    }
    const limit = ownLimit(config, name)
    let limiter = everywhere
    try {
      if (limit !== undefined) limiter = limiterFor(limit, request)
    } catch (error) {
      done(withoutDetails(error) as Error)
      return
    }
    if (limiter) limiter.hook(request, reply, done)
    else done()
  }
}

/**
 * Another plugin of the same decorator would read the options of the same routes, and find no limits in them.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
function refuseOtherPlugin(app: FastifyInstance, name: string): void {
  const refuse = () => {
    throw new SluiceError(
      'INVALID_POLICY',
      `rateLimit: expected no other plugin that decorates app.${name}, got one such as @fastify/rate-limit: ` +
        'import { rateLimit } from "@sluice/fastify/beside", for app.sluice and config.sluice',
    )
  }
  const decorator = (app as unknown as Record<string, object>)[name]
  if (app.hasDecorator(name) && !Object.hasOwn(decorator as object, OURS)) refuse()
  // Registered later, @fastify/rate-limit leaves that decorator as it is.
  if (name === 'rateLimit') app.addHook('onReady', async () => void (app.hasDecorator('createRateLimit') && refuse()))
}

/** A store that is away must not prevent the start of the server: `unavailable` decides until it is back. */
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

/** Adds the decorators that routes use. */
function decorate(
  app: FastifyInstance,
  options: FastifyRateLimitOptions,
  limiters: RouteLimiters,
  limiter: RateLimitHook['limiter'] | undefined,
  name: string,
): void {
  app.decorateRequest(name, undefined)
  const { requestProperty = name } = options
  // Declared, so that all requests have one shape.
  if (!app.hasRequestDecorator(requestProperty)) app.decorateRequest(requestProperty, undefined)
  const forRoute = (given: FastifyRateLimitOptions, ...uncalled: unknown[]) => {
    refuseUncalled(`app.${name}({ limit: 100, window: "1m" })`, uncalled)
    return limiters.hookFor(checkedOptions(`app.${name}`, given), 'route')
  }
  app.decorate(name, Object.assign(forRoute, { limiter, [OURS]: true }))
}

type RouteHooks = FastifyRouteOptions & { [Hook in Phase]?: unknown }

/** After the hooks of the app. Where users are known by then, after the route's own as well, which may find them. */
function place(route: RouteHooks, { phase, hook }: RouteLimiter): void {
  const hooks = [route[phase] ?? []].flat()
  // A route may be a copy of another, such as a HEAD route of its GET route.
  if (!hooks.includes(hook)) route[phase] = (isLate(phase) ? [...hooks, hook] : [hook, ...hooks]) as never
}

/** Fastify calls no hook for routes that were added before, so they have the plugin's alone. */
function checkReachable(phase: Phase, plugins: Phase): void {
  if (phase === plugins) return
  throw new SluiceError(
    'INVALID_POLICY',
    `rateLimit: hook: expected ${plugins} for a route that was added before the plugin had loaded, got ${phase} (await app.register)`,
  )
}

/** The limit that a route's `config` names. */
function ownLimit(config: object | undefined, name: string): unknown {
  return config && propertyOf(config as Readonly<Record<string, unknown>>, name)
}
