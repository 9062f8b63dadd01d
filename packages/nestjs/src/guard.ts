import {
  type CanActivate,
  type ExecutionContext,
  Inject,
  Injectable,
  type OnModuleInit,
  Optional,
} from '@nestjs/common'
import { type LimitForm, SluiceError } from '@sluice/core'
import { refuseUncalled } from '@sluice/core/http'
import { ContextLimiter } from './context-limiter.js'
import { SluiceLimiters } from './limiters.js'
import type { NestLimiter, NestRateLimitOptions, SocketOptions } from './options.js'

/**
 * The guard of `SluiceModule`: decides by the `@RateLimit` of a handler or its class, else by the limiter of the module.
 *
 * @example providers: [{ provide: APP_GUARD, useClass: SluiceGuard }]
 */
export class SluiceGuard implements CanActivate, OnModuleInit {
  // Not `#limiters`: instrumentation may wrap providers in a proxy.
  private readonly limiters: SluiceLimiters | undefined

  /** @internal `limiters`: undefined without `SluiceModule`, as where a test makes a controller and calls its methods. */
  constructor(limiters?: SluiceLimiters) {
    this.limiters = limiters
  }

  /**
   * Called by Nest, before an app takes requests.
   *
   * @throws SluiceError `INVALID_POLICY` without `SluiceModule`
   */
  onModuleInit(): void {
    this.present()
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    return this.present().decide(context)
  }

  private present(): SluiceLimiters {
    if (this.limiters) return this.limiters
    throw new SluiceError(
      'INVALID_POLICY',
      'SluiceGuard: expected SluiceModule.forRoot() in the imports of the root module (a test without limits replaces the guard: ' +
        '.overrideGuard(SluiceGuard).useValue({ canActivate: () => true }))',
    )
  }
}

// As functions: no option of a compiler is needed, and no metadata that it emits.
Injectable()(SluiceGuard)
Inject(SluiceLimiters)(SluiceGuard, undefined, 0)
Optional()(SluiceGuard, undefined, 0)

/** A guard with a limiter of its own. */
export interface RateLimitGuard extends CanActivate {
  /** To peek, reset, block and unblock. */
  readonly limiter: NestLimiter
}

/**
 * A guard with a limiter of its own, beside those of the module and without need of one. It decides for itself: a refusal of a
 * later guard leaves its charge.
 *
 * @example `@UseGuards(rateLimitGuard({ name: 'uploads', limit: 5, window: '1h' }))`
 * @throws SluiceError `INVALID_POLICY`
 */
export function rateLimitGuard(
  options: NestRateLimitOptions & SocketOptions & LimitForm,
  ...uncalled: never[]
): RateLimitGuard {
  refuseUncalled('rateLimitGuard({ limit: 100, window: "1m" })', uncalled)
  const by = new ContextLimiter(options)
  const guard: RateLimitGuard = { canActivate: (context) => by.decide(context), limiter: by.limiter }
  made.add(guard)
  return guard
}

const made = new WeakSet<object>()

/** Whether a guard, or its class, is one of this package. */
export function isOfSluice(guard: unknown): boolean {
  return guard === SluiceGuard || guard instanceof SluiceGuard || made.has(guard as object)
}
