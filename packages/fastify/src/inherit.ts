import { type BodyOptions, type CountOptions, SluiceError } from '@sluice/core'
import type { FastifyRequest } from 'fastify'
import type { FastifyRateLimitOptions } from './hook.js'
import type { Phase } from './phase.js'

/** A route's own options of its limiter. */
export interface RouteOptions extends Omit<FastifyRateLimitOptions, 'count' | 'body'> {
  /** As of the plugin; a field that it does not name is the plugin's. */
  readonly count?: Partial<CountOptions<FastifyRequest>>
  /** As of the plugin; a field that it does not name is the plugin's. */
  readonly body?: Partial<BodyOptions>
  /** The hook of Fastify in which the limiter runs. @default the plugin's */
  readonly hook?: Phase
  /**
   * Routes of one group share one limiter: 1 to 64 letters, digits, `_` and `-`. The first route of a group that is added has
   * its options; the others name only the group.
   */
  readonly group?: string
}

type Options = Partial<FastifyRateLimitOptions>

/** Options whose fields a route takes over one by one, too. */
const GROUPS = ['count', 'body', 'enforce', 'unavailable'] as const

/**
 * The options of a route's limiter: its own, and the plugin's where it names none. A route that names an option `undefined` has
 * none.
 *
 * @throws SluiceError `INVALID_POLICY` where part of a limit is named that the plugin has no other part of
 */
export function inherit(where: string, plugin: Options, own: RouteOptions): FastifyRateLimitOptions {
  const { name: _name, limit, window, limits, tiers, tier, policies, onDeny, priority, ban, ...defaults } = plugin
  const ofPolicy: Options = { limit, window, limits, tiers, tier, policies }
  const inherited = { ...defaults, ...policyFor(where, ofPolicy, { onDeny, priority, ban }, own) }
  const groups = GROUPS.filter((group) => isFields(own[group]) && isFields(plugin[group])).map((group) => [
    group,
    inheritFields(plugin[group] as Fields, own[group] as Fields),
  ])
  // A field that neither names is missed where the options are checked.
  return { ...withoutUndefined(inherited), ...own, ...Object.fromEntries(groups) } as FastifyRateLimitOptions
}

type Fields = Readonly<Record<string, unknown>>

function isFields(group: unknown): group is Fields {
  return typeof group === 'object' && group !== null && !Array.isArray(group)
}

/**
 * The fields of a group. A route does not take over what one of its own excludes, or it would be rejected for a field that it
 * never named.
 */
function inheritFields(plugin: Fields, own: Fields): Fields {
  const { mode, decide = 'local', share } = own
  const isFull = Object.hasOwn(own, 'percent') && own.percent === undefined
  const excluded: Readonly<Record<string, boolean>> = {
    mode: own.percent !== undefined,
    percent: mode === 'report',
    salt: mode === 'report' || isFull,
    decide: share !== undefined,
    share: decide !== 'local',
  }
  const kept = Object.entries(withoutUndefined(plugin)).filter(([field]) => !excluded[field])
  return { ...Object.fromEntries(kept), ...own }
}

function withoutUndefined(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}

/**
 * The part of the plugin's limits that a route inherits: all where it names none, and the other half where it names a limit or
 * a window alone. The options that decide them come with them.
 */
function policyFor(where: string, plugin: Options, decidedBy: Options, own: RouteOptions): Options {
  if (own.limits !== undefined || own.tiers !== undefined || own.policies !== undefined) return {}
  if (own.limit !== undefined && own.window !== undefined) return {}
  if (own.limit === undefined && own.window === undefined) {
    // A `tier` of its own selects one of the plugin's tiers.
    return { ...plugin, ...decidedBy }
  }
  const [named, missing] = own.limit === undefined ? (['window', 'limit'] as const) : (['limit', 'window'] as const)
  if (plugin[missing] !== undefined) return { [missing]: plugin[missing], ...decidedBy }
  const why = plugin.limits || plugin.tiers ? `, as the plugin has ${plugin.limits ? 'limits' : 'tiers'}` : ''
  throw new SluiceError('INVALID_POLICY', `${where}: ${named}: expected a ${missing} beside it${why}`)
}
