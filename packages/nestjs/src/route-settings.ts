import { SetMetadata } from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import { SluiceError } from '@sluice/core'
import { freeName } from '@sluice/core/http'
import { emitWarning } from '@sluice/core/internal'
import type { OwnOptions } from './options.js'

const KEY = 'sluice:rate-limit'
const reflector = new Reflector()

/** The own limiter of a handler or of a class with handlers: its options, and a name for it; `false` for no limiter. */
export type RouteSettings = { readonly options: OwnOptions; readonly name: string } | false

/** @throws SluiceError `INVALID_POLICY` where the target has some already */
export function setSettings(settings: RouteSettings, name: string, target: object): void {
  if (Reflect.hasOwnMetadata(KEY, target)) {
    throw new SluiceError(
      'INVALID_POLICY',
      `RateLimit of ${name}: expected one @RateLimit or @SkipRateLimit (several limits go into \`limits\`)`,
    )
  }
  SetMetadata(KEY, settings)(target as never)
}

/** The name of a limiter or of a tier: the decorator's own, or one of its class that is free. */
export function nameFor({ options, name }: Exclude<RouteSettings, false>, taken: Iterable<string>): string {
  if (options.name !== undefined) return options.name
  const [className = ''] = name.split('-')
  if (looksMinified(className)) warnOfMinified(name)
  return freeName(name, new Set(taken))
}

/** As minifiers name classes: `o`, `Xt`, `kDe`. */
function looksMinified(className: string): boolean {
  return className.length < 3 || (className.length === 3 && !/^[A-Z](?:[a-z]+|[A-Z]+)$/.test(className))
}

let hasWarned = false

/** Another build may give the class another name. One warning is enough: it is about the build. */
function warnOfMinified(name: string): void {
  if (hasWarned) return
  hasWarned = true
  emitWarning(
    'SLUICE_MINIFIED_NAME',
    `RateLimit of ${name}: the class seems to have its name from a minifier, so that the next build may begin a new count: give ` +
      'each @RateLimit a name, or have the bundler keep the names of classes',
  )
}

/** The settings of a handler, else of its class. Those of a parent class count for its children. */
export function settingsOf(handler: object, owner: object): RouteSettings | undefined {
  return reflector.getAllAndOverride<RouteSettings | undefined>(KEY, [handler, owner] as never)
}
