import { type ExecutionContext, Inject, Injectable } from '@nestjs/common'
import { ModulesContainer } from '@nestjs/core'
import { SluiceError } from '@sluice/core'
import { type InheritingOptions, inheritOptions, knownOptions, RATE_LIMIT_OPTIONS } from '@sluice/core/http'
import { ContextLimiter } from './context-limiter.js'
import { handlersIn, runsGuardsOfFields } from './handlers.js'
import { changesByName, withTiers } from './limits-by-name.js'
import {
  type AnyRequest,
  checkOptions,
  type NestLimiter,
  type OwnOptions,
  type SluiceModuleOptions,
} from './options.js'
import { nameFor, type RouteSettings, settingsOf } from './route-settings.js'

/** The token of the module's options. */
export const SLUICE_OPTIONS = Symbol('SluiceModule.forRoot')

/** The limiters of an app: that of the module, and one for each object of options in a `@RateLimit`. Made with the app. */
export class SluiceLimiters {
  private readonly options: SluiceModuleOptions
  private readonly modules: ModulesContainer
  private readonly own: ContextLimiter | undefined
  private readonly byOptions = new Map<OwnOptions, ContextLimiter>()
  private readonly byName = new Map<string, ContextLimiter>()
  /** By handler and class; undefined for those that are not limited. */
  private readonly byHandler = new WeakMap<object, Map<object, ContextLimiter | undefined>>()

  /**
   * @internal
   * @throws SluiceError `INVALID_POLICY`
   */
  constructor(given: SluiceModuleOptions, modules: ModulesContainer) {
    checkOptions('SluiceModule', 'forRoot({ limit: 100, window: "1m" })', given)
    const { unknownPaths: _, ...options } = given
    knownOptions('SluiceModule', options, [...RATE_LIMIT_OPTIONS, 'socketAddress'])
    this.options = madeWithApp(options)
    // First, as it also checks the decorators that change limits by name.
    const optionsWithTiers = withTiers(this.options, handlersIn(modules))
    if (hasLimit(options)) {
      this.own = new ContextLimiter(optionsWithTiers)
      this.byName.set(this.own.limiter.name, this.own)
    }
    this.modules = modules
    for (const { handler, owner, place, type } of handlersIn(modules)) {
      if (!settingsOf(handler, owner)) continue
      if (type === 'rpc') {
        throw new SluiceError(
          'INVALID_POLICY',
          `RateLimit of ${place}: expected a handler of HTTP, GraphQL or WebSockets, got one of microservices ` +
            '(a @RateLimit of the class applies to it too: @SkipRateLimit() exempts it)',
        )
      }
      this.of(handler, owner)?.checkFor(type)
    }
  }

  /**
   * @internal Checks that the limiters can decide on the calls of every handler, for a guard that is global. Messages of
   * microservices are not limited.
   * @throws SluiceError `INVALID_POLICY`
   */
  checkAll(): void {
    for (const { handler, owner, type } of handlersIn(this.modules)) {
      if (type === 'rpc' || (type === 'field' && !runsGuardsOfFields(this.modules, owner))) continue
      const limiter = this.of(handler, owner)
      limiter?.checkFor(type)
      limiter?.decidesGlobally()
    }
  }

  /** The module's limiter; undefined if it has no limit. */
  get module(): NestLimiter | undefined {
    return this.own?.limiter
  }

  /**
   * The limiter of a name: to peek, reset, block and unblock. That of a `@RateLimit` without one is `Class-handler` or `Class`.
   *
   * @throws SluiceError `INVALID_POLICY` where none has the name
   */
  get(name: string): NestLimiter {
    const found = this.byName.get(name)
    if (found) return found.limiter
    const names = [...this.byName.keys()].join(', ') || 'none'
    throw new SluiceError('INVALID_POLICY', `SluiceLimiters: expected the name of a limiter (${names}), got "${name}"`)
  }

  /** @internal */
  decide(execution: ExecutionContext): boolean | Promise<boolean> {
    // Messages of microservices are not limited. An error instead would lose events.
    if (execution.getType<string>() === 'rpc') return true
    return this.of(execution.getHandler(), execution.getClass())?.decide(execution) ?? true
  }

  /** @internal The same for a request whose path has no route. */
  decideUnknownPath(request: object, response: object): boolean | Promise<boolean> {
    return this.own?.decideUnknownPath(request, response) ?? true
  }

  private of(handler: object, owner: object): ContextLimiter | undefined {
    let byOwner = this.byHandler.get(handler)
    if (!byOwner) {
      byOwner = new Map()
      this.byHandler.set(handler, byOwner)
    }
    if (!byOwner.has(owner)) byOwner.set(owner, this.bySettings(settingsOf(handler, owner)))
    return byOwner.get(owner)
  }

  private bySettings(settings: RouteSettings | undefined): ContextLimiter | undefined {
    if (settings === undefined) return this.own
    if (settings === false) return undefined
    if (changesByName(settings.options)) return this.own
    return this.byOptions.get(settings.options) ?? this.add(settings)
  }

  private add(settings: Exclude<RouteSettings, false>): ContextLimiter {
    const { options, name: place } = settings
    const where = { where: `RateLimit of ${place}`, from: 'the module' }
    const { socketAddress, ...app } = this.options
    const name = nameFor(settings, this.byName.keys())
    if (this.byName.has(name)) {
      throw new SluiceError(
        'INVALID_POLICY',
        `RateLimit of ${place}: name: expected one of its own, as another limiter is called "${name}" (one object of options, ` +
          'given to several decorators, is one limiter)',
      )
    }
    const limiter = new ContextLimiter(
      madeWithApp({ ...inheritOptions(where, app, options as InheritingOptions<AnyRequest>), name, socketAddress }),
    )
    this.byOptions.set(options, limiter)
    this.byName.set(name, limiter)
    return limiter
  }
}

Injectable()(SluiceLimiters)
Inject(SLUICE_OPTIONS)(SluiceLimiters, undefined, 0)
Inject(ModulesContainer)(SluiceLimiters, undefined, 1)

/** These limiters are made with the app, and not for each request. Tests make many apps in one process. */
function madeWithApp<Options extends Pick<SluiceModuleOptions, 'warnings'>>(options: Options): Options {
  const { warnings = {} } = options
  if (typeof warnings !== 'object' || warnings === null) return options
  return { ...options, warnings: { SLUICE_MANY_LIMITERS: false, ...warnings } }
}

function hasLimit({ limit, window, limits, tiers, policies }: SluiceModuleOptions): boolean {
  return [limit, window, limits, tiers, policies].some((option) => option !== undefined)
}
