import { UseGuards } from '@nestjs/common'
import { SluiceError } from '@sluice/core'
import { SluiceGuard } from './guard.js'
import { checkOptions, type RouteRateLimitOptions } from './options.js'
import { type RouteSettings, setSettings } from './route-settings.js'

type HandlerOrClassDecorator = ClassDecorator & MethodDecorator

/**
 * Gives a handler, or all handlers of a class, a limiter of their own in place of the module's; that of a handler counts before
 * that of its class. It inherits the options of the module that it does not name. All of its limits are decided together, all
 * or none. Decorators with one object of options share one limiter. Applies `SluiceGuard` too, which decides once where it is
 * global as well.
 *
 * Limits by their names change those of the module instead, which go on counting over all routes: `false` skips one.
 *
 * Without a name the policy is called `Class-handler`, or `Class`.
 *
 * @example `@RateLimit({ limits: [perSecond(1), perMinute(20)] })`
 * @example `@RateLimit({ limits: { burst: false, daily: perDay(50) } })`
 * @throws SluiceError `INVALID_POLICY` where the class is defined, or when the app is created
 */
export function RateLimit(options: RouteRateLimitOptions): HandlerOrClassDecorator {
  checkOptions('RateLimit', '@RateLimit({ limit: 5, window: "1m" })', options)
  return decorator((name) => ({ options, name }), UseGuards(SluiceGuard))
}

/** Exempts a handler, or all handlers of a class that have no `@RateLimit`, from all limiters of the module and its class. */
export function SkipRateLimit(): HandlerOrClassDecorator {
  return decorator(() => false)
}

function decorator(
  settings: (name: string) => RouteSettings,
  guard?: HandlerOrClassDecorator,
): HandlerOrClassDecorator {
  return (target: object, key?: string | symbol, descriptor?: PropertyDescriptor) => {
    const owner = typeof target === 'function' ? target : target.constructor
    const name = key === undefined ? owner.name : `${owner.name}-${typeof key === 'symbol' ? key.description : key}`
    const decorated: unknown = key === undefined ? target : descriptor?.value
    if (typeof decorated !== 'function') {
      throw new SluiceError('INVALID_POLICY', `RateLimit of ${name}: expected a class or a method`)
    }
    setSettings(settings(name), name, decorated)
    if (guard && key !== undefined) guard(target, key, descriptor as PropertyDescriptor)
    else if (guard) guard(target as never)
  }
}
