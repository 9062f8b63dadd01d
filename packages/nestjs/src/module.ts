import { type DynamicModule, Inject, Module, type ModuleMetadata, type OnModuleInit, Scope } from '@nestjs/common'
import { ApplicationConfig, HttpAdapterHost, ModuleRef, ModulesContainer } from '@nestjs/core'
import { Limiter, SluiceError } from '@sluice/core'
import { ContextLimiter } from './context-limiter.js'
import { checkFieldResolvers } from './field-resolvers.js'
import { SluiceGuard } from './guard.js'
import { HandlerEnds } from './handler-ends.js'
import { SLUICE_OPTIONS, SluiceLimiters } from './limiters.js'
import type { SluiceModuleOptions } from './options.js'
import { countUnknownPaths } from './unknown-paths.js'

/** Options of the module that depend on other providers. */
export interface SluiceModuleAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** The tokens of the arguments of `useFactory`. @default [] */
  // biome-ignore lint/suspicious/noExplicitAny: providers of any kind
  readonly inject?: any[]
  // biome-ignore lint/suspicious/noExplicitAny: providers of any kind
  readonly useFactory: (...injected: any[]) => SluiceModuleOptions | Promise<SluiceModuleOptions>
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
    return dynamicModule({ useFactory: () => options })
  }

  /**
   * The same, with options that depend on other providers.
   *
   * @example SluiceModule.forRootAsync({ inject: [REDIS], useFactory: (redis) => ({ store: redisStore(redis), limit: 100, window: '1m' }) })
   */
  static forRootAsync(options: SluiceModuleAsyncOptions): DynamicModule {
    if (typeof options?.useFactory !== 'function') {
      throw new SluiceError('INVALID_POLICY', 'SluiceModule.forRootAsync: useFactory: expected a function')
    }
    return dynamicModule(options)
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

function dynamicModule({ imports = [], inject = [], useFactory }: SluiceModuleAsyncOptions): DynamicModule {
  return {
    module: SluiceModule,
    global: true,
    imports,
    providers: [
      { provide: SLUICE_OPTIONS, inject, useFactory },
      SluiceLimiters,
      SluiceGuard,
      { provide: Limiter, inject: [SluiceLimiters], useFactory: (limiters: SluiceLimiters) => limiters.module },
      // With the providers: Nest makes its routes before it calls `onModuleInit`.
      { provide: HandlerEnds, inject: [ApplicationConfig, SluiceLimiters], useFactory: watchHandlers },
    ],
    exports: [SluiceLimiters, SluiceGuard, Limiter],
  }
}
