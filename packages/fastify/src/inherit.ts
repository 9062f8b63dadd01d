import { SluiceError } from '@sluice/core'
import type { FastifyRateLimitOptions } from './hook.js'

type Options = Partial<FastifyRateLimitOptions>

/**
 * The options of a route's limiter: its own, and the plugin's where it names none. What one of its own excludes
 * it does not take over, or it would be refused for an option that it never named.
 *
 * @throws SluiceError `INVALID_POLICY` where part of a limit is named that the plugin has no other part of
 */
export function inherit(where: string, plugin: Options, own: FastifyRateLimitOptions): FastifyRateLimitOptions {
  const { name: _name, limit, window, limits, tiers, tier, policies, onDeny, priority, ban, ...defaults } = plugin
  const ofPolicy: Options = { limit, window, limits, tiers, tier, policies }
  const inherited = { ...defaults, ...policyFor(where, ofPolicy, { onDeny, priority, ban }, own) }
  const { onUnavailable = 'local', share, mode, enforcePercent, count, maxBodyBytes } = own
  const excluded: Partial<Record<string, boolean>> = {
    share: onUnavailable !== 'local',
    onUnavailable: share !== undefined,
    enforcePercent: mode === 'report',
    enforceSalt: mode === 'report' || (Object.hasOwn(own, 'enforcePercent') && enforcePercent === undefined),
    mode: enforcePercent !== undefined,
    // Said to be none, it is not the plugin's either.
    maxWait: Object.hasOwn(own, 'count') && count === undefined,
    requireLength: Object.hasOwn(own, 'maxBodyBytes') && maxBodyBytes === undefined,
  } satisfies { [Option in keyof FastifyRateLimitOptions]: boolean }
  const kept = Object.entries(inherited).filter(([option, value]) => value !== undefined && !excluded[option])
  return { ...Object.fromEntries(kept), ...own }
}

/**
 * What a route takes of the plugin's limits: all where it names none, and the other half where it names a limit or a window
 * alone. With them goes what they are decided by.
 */
function policyFor(where: string, plugin: Options, decidedBy: Options, own: Options): Options {
  if (own.limits !== undefined || own.tiers !== undefined || own.policies !== undefined) return {}
  if (own.limit !== undefined && own.window !== undefined) return {}
  if (own.limit === undefined && own.window === undefined) {
    // A tier of its own is for the plugin's tiers.
    return { ...plugin, ...decidedBy }
  }
  const [named, missing] = own.limit === undefined ? (['window', 'limit'] as const) : (['limit', 'window'] as const)
  if (plugin[missing] !== undefined) return { [missing]: plugin[missing], ...decidedBy }
  const why = plugin.limits || plugin.tiers ? `, as the plugin has ${plugin.limits ? 'limits' : 'tiers'}` : ''
  throw new SluiceError('INVALID_POLICY', `${where}: ${named}: expected a ${missing} beside it${why}`)
}
