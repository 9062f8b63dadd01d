import { SetMetadata } from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import { SluiceError } from '@sluice/core'
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

/** The settings of a handler, else of its class. Those of a parent class count for its children. */
export function settingsOf(handler: object, owner: object): RouteSettings | undefined {
  return reflector.getAllAndOverride<RouteSettings | undefined>(KEY, [handler, owner] as never)
}
