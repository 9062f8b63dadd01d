import {
  type DynamicModule,
  Inject,
  type InjectionToken,
  Module,
  type ModuleMetadata,
  type OnModuleInit,
  type Provider,
  Scope,
  type Type,
} from '@nestjs/common'
import { ApplicationConfig, HttpAdapterHost, ModuleRef, ModulesContainer } from '@nestjs/core'
import { Limiter, SluiceError } from '@sluice/core'
import { ContextLimiter } from './context-limiter.js'
import { checkFieldResolvers } from './field-resolvers.js'
import { SluiceGuard } from './guard.js'
import { HandlerEnds } from './handler-ends.js'
import { SLUICE_OPTIONS, SluiceLimiters } from './limiters.js'
import type { SluiceModuleOptions } from './options.js'
import { countUnknownPaths } from './unknown-paths.js'

/** Makes the options of the module, as a provider. */
export interface SluiceOptionsFactory {
  createSluiceOptions(): SluiceModuleOptions | Promise<SluiceModuleOptions>
}

/** Options of the module that depend on other providers: one of `useFactory`, `useClass` and `useExisting`. */
export interface SluiceModuleAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** The tokens of the arguments of `useFactory`. @default [] */
  // biome-ignore lint/suspicious/noExplicitAny: providers of any kind
  readonly inject?: any[]
  /** Returns the options. */
  // biome-ignore lint/suspicious/noExplicitAny: providers of any kind
  readonly useFactory?: (...injected: any[]) => SluiceModuleOptions | Promise<SluiceModuleOptions>
  /** A class that makes the options. The module makes its instance, with the providers of `imports`. */
  readonly useClass?: Type<SluiceOptionsFactory>
  /** The token of a provider of `imports`, or of a global module, that makes the options. */
  readonly useExisting?: InjectionToken<SluiceOptionsFactory>
}

/**
 * Limits the handlers of a Nest app, of every module. Import it once, in the root module. `SluiceGuard` enforces its limits;
 * `Limiter`, `SluiceLimiters` and `SluiceGuard` can be injected by these tokens.
 */
export class SluiceModule implements OnModuleInit {
  private readonly app: {
    readonly own: ModuleRef
    readonly modules: ModulesContainer
    readonly config: ApplicationConfig
    readonly host: HttpAdapterHost
  }

  // Not the limiters: where these are made for each request, so would be this, and Nest would not call `onModuleInit`.
  /** @internal */
  constructor(own: ModuleRef, modules: ModulesContainer, config: ApplicationConfig, host: HttpAdapterHost) {
    this.app = { own, modules, config, host }
  }

  /**
   * The module, for the imports of the root module.
   *
   * @param options of its limiter, which those of `@RateLimit` inherit. Without a limit, only these limit.
   * @example imports: [SluiceModule.forRoot({ limit: 100, window: '1m' })]
   * @throws SluiceError `INVALID_POLICY` when the app is created
   */
  static forRoot(options: SluiceModuleOptions = {}): DynamicModule {
    return dynamicModule([], [{ provide: SLUICE_OPTIONS, useFactory: () => options }])
  }

  /**
   * The same, with options that depend on other providers.
   *
   * @example SluiceModule.forRootAsync({ inject: [REDIS], useFactory: (redis) => ({ store: redisStore(redis), limit: 100, window: '1m' }) })
   * @throws SluiceError `INVALID_POLICY`
   */
  static forRootAsync(options: SluiceModuleAsyncOptions): DynamicModule {
    return dynamicModule(options?.imports, optionsProviders(options))
  }

  /**
   * Called by Nest.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  onModuleInit(): void {
    const { own, modules, config, host } = this.app
    if ([...modules.values()].filter(({ metatype }) => metatype === SluiceModule).length > 1) {
      throw new SluiceError('INVALID_POLICY', 'SluiceModule: expected it in the imports of one module of the app')
    }
    if (own.introspect(SluiceLimiters).scope !== Scope.DEFAULT) {
      throw new SluiceError(
        'INVALID_POLICY',
        'SluiceModule.forRootAsync: inject: expected providers that live as long as the app, got one that Nest makes for each ' +
          'request, which would have limiters of its own (for values of a request, limit and key may be functions)',
      )
    }
    const limiters = own.get(SluiceLimiters)
    const { unknownPaths = true } = own.get<SluiceModuleOptions>(SLUICE_OPTIONS)
    if (typeof unknownPaths !== 'boolean') {
      throw new SluiceError('INVALID_POLICY', 'SluiceModule: unknownPaths: expected true or false')
    }
    const isGlobal =
      config.getGlobalGuards().some(isSluiceGuard) || config.getGlobalRequestGuards().some(makesSluiceGuard)
    checkFieldResolvers(modules)
    if (isGlobal) limiters.checkAll()
    const adapter = host.httpAdapter
    // A microservice has none, or one without a type.
    const platform = adapter?.getType?.()
    if (!platform) return
    if (platform !== 'express' && platform !== 'fastify') {
      throw new SluiceError(
        'INVALID_POLICY',
        `SluiceModule: expected the platform express or fastify, got "${platform}", which tells no addresses of clients`,
      )
    }
    if (isGlobal && unknownPaths) countUnknownPaths(adapter, limiters)
  }
}

Module({})(SluiceModule)
for (const [index, token] of [ModuleRef, ModulesContainer, ApplicationConfig, HttpAdapterHost].entries()) {
  Inject(token)(SluiceModule, undefined, index)
}

function isSluiceGuard(guard: unknown): boolean {
  return guard instanceof SluiceGuard
}

/** Whether a provider makes the guard for each request: by its class, or of the guard that can be injected. */
function makesSluiceGuard({
  metatype,
  inject,
}: ReturnType<ApplicationConfig['getGlobalRequestGuards']>[number]): boolean {
  return metatype === SluiceGuard || isSluiceGuard(metatype?.prototype) || inject?.includes(SluiceGuard) === true
}

function watchHandlers(config: ApplicationConfig): HandlerEnds {
  const ends = new HandlerEnds()
  if (ContextLimiter.anyHoldsPermits) config.addGlobalInterceptor(ends)
  return ends
}

/** @throws SluiceError `INVALID_POLICY` */
function optionsProviders(given: SluiceModuleAsyncOptions): Provider[] {
  const { inject = [], useFactory, useClass, useExisting } = given ?? {}
  const ways = [useFactory, useClass, useExisting].filter((way) => way !== undefined)
  if (ways.length !== 1 || (useExisting === undefined && typeof ways[0] !== 'function')) {
    throw new SluiceError(
      'INVALID_POLICY',
      'SluiceModule.forRootAsync: expected one of useFactory (a function), useClass (a class) and useExisting (a token)',
    )
  }
  if (useFactory) return [{ provide: SLUICE_OPTIONS, inject, useFactory }]
  const maker = (useClass ?? useExisting) as InjectionToken
  const options = { provide: SLUICE_OPTIONS, inject: [maker], useFactory: optionsOf }
  return useClass ? [useClass, options] : [options]
}

function optionsOf(maker: SluiceOptionsFactory): SluiceModuleOptions | Promise<SluiceModuleOptions> {
  if (typeof maker?.createSluiceOptions === 'function') return maker.createSluiceOptions()
  throw new SluiceError(
    'INVALID_POLICY',
    'SluiceModule.forRootAsync: expected a class with the method createSluiceOptions(), which returns the options',
  )
}

function dynamicModule(imports: ModuleMetadata['imports'] = [], options: Provider[]): DynamicModule {
  return {
    module: SluiceModule,
    global: true,
    imports,
    providers: [
      ...options,
      SluiceLimiters,
      SluiceGuard,
      { provide: Limiter, inject: [SluiceLimiters], useFactory: (limiters: SluiceLimiters) => limiters.module },
      // With the providers: Nest makes its routes before it calls `onModuleInit`.
      { provide: HandlerEnds, inject: [ApplicationConfig, SluiceLimiters], useFactory: watchHandlers },
    ],
    exports: [SluiceLimiters, SluiceGuard, Limiter],
  }
}
