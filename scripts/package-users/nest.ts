// A typed program for Nest, compiled as CommonJS and as an ES module. Nest 12 is an ES module, which CommonJS may load.
import type { CanActivate, ExecutionContext } from '@nestjs/common'
import {
  type Limiter,
  RateLimit,
  rateLimitGuard,
  SkipRateLimit,
  type SluiceGuard,
  SluiceModule,
  type Store,
} from '@sluice/nestjs'

export const modules = [
  SluiceModule.forRoot({ limit: 100, window: '1m', unknownPaths: false }),
  SluiceModule.forRootAsync({ inject: ['STORE'], useFactory: (store: Store) => ({ store, limit: 1, window: '1m' }) }),
]
export const guards: CanActivate[] = [rateLimitGuard({ limit: 1, window: '1m' })]
export const { limiter } = rateLimitGuard({ limit: 1, window: '1m' })
export const same: Limiter<{ readonly user: string }> = limiter
export const decorators: MethodDecorator[] = [RateLimit({ limit: 5 }), SkipRateLimit()]
export const decide = (guard: SluiceGuard, context: ExecutionContext) => guard.canActivate(context)

// @ts-expect-error an option that does not exist
RateLimit({ limt: 5 })
// @ts-expect-error a guard of its own needs a limit
rateLimitGuard({ name: 'uploads' })
