import { type Limit, SluiceError } from '@sluice/core'
import type { HttpContext } from '@sluice/core/http'
import { executionContextOf } from './context-limiter.js'
import type { Handler } from './handlers.js'
import type { LimitsByName, OwnOptions, SluiceModuleOptions } from './options.js'
import { nameFor, type RouteSettings, settingsOf } from './route-settings.js'

type Settings = Exclude<RouteSettings, false>

/** The tier of calls whose handlers change no limit of the module. */
const MODULE = 'module'

/** Whether options change limits of the module by their names, instead of having a limiter of their own. */
export function changesByName({ limits }: OwnOptions): boolean {
  return Object.prototype.toString.call(limits) === '[object Object]'
}

/**
 * The options of the module, with a tier for each `@RateLimit` that changes limits by their names. Tiers share the limits that
 * they have as one object: those that a handler keeps count over all routes.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function withTiers(app: SluiceModuleOptions, handlers: Iterable<Handler>): SluiceModuleOptions {
  const names = new Map<OwnOptions, string>()
  const tiers: Record<string, readonly Limit[]> = {}
  for (const { handler, owner } of handlers) {
    const settings = settingsOf(handler, owner)
    if (!settings || !changesByName(settings.options) || names.has(settings.options)) continue
    if (names.size === 0) tiers[MODULE] = app.limits ?? []
    const name = nameFor(settings, Object.keys(tiers))
    if (Object.hasOwn(tiers, name)) throw wrong(settings, `name: expected one of its own, got "${name}"`)
    names.set(settings.options, name)
    tiers[name] = changed(settings, app)
  }
  if (names.size === 0) return app
  const { limits: _, ...rest } = app
  // Without a context: an identity that is given by hand.
  const tier = (_request: unknown, context?: HttpContext): string => {
    const execution = context && executionContextOf(context)
    const settings = execution && settingsOf(execution.getHandler(), execution.getClass())
    return (settings && names.get(settings.options)) || MODULE
  }
  return { ...rest, tiers, tier }
}

/** The limits of the module as a decorator changes them. */
function changed(settings: Settings, { limits = [] }: SluiceModuleOptions): readonly Limit[] {
  const { limits: given, name: _, ...others } = settings.options
  const [other] = Object.keys(others)
  if (other !== undefined) {
    throw wrong(settings, `${other}: expected none beside limits by name, as the limiter of the module decides`)
  }
  const changes = new Map<string | undefined, unknown>(Object.entries(given as LimitsByName))
  const kept = limits.flatMap((limit) => {
    if (!changes.has(limit.name)) return [limit]
    const change = changes.get(limit.name)
    changes.delete(limit.name)
    return change === false ? [] : [named(settings, limit.name as string, change)]
  })
  const [unknown] = changes.keys()
  if (unknown !== undefined) {
    const known = limits.flatMap(({ name }) => name ?? []).join(', ') || 'none: give its limits names'
    throw wrong(settings, `limits: expected the names of limits of the module (${known}), got "${unknown}"`)
  }
  if (kept.length === 0) throw wrong(settings, 'limits: expected one that is left (@SkipRateLimit() exempts from all)')
  return kept
}

function named(settings: Settings, name: string, change: unknown): Limit {
  const limit = change as Limit | null | undefined
  if (typeof limit?.resolve === 'function' && (limit.name ?? name) === name) return Object.freeze({ ...limit, name })
  throw wrong(settings, `limits: ${name}: expected false, or a limit such as perMinute(20) of no other name`)
}

function wrong({ name }: Settings, what: string): SluiceError {
  return new SluiceError('INVALID_POLICY', `RateLimit of ${name}: ${what}`)
}
