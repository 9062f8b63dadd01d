import { SluiceError } from '../util/errors.js'
import type { BodyOptions } from './bodies/body.js'
import type { RateLimitOptions } from './options.js'
import type { CountOptions } from './outcomes/counting.js'

/** The options of a route's limiter, which takes over those that it does not name from a limiter of the whole app. */
export interface InheritingOptions<Request> extends Omit<RateLimitOptions<Request>, 'count' | 'body'> {
  /** As of the app; a field that it does not name is the app's. */
  readonly count?: Partial<CountOptions<Request>>
  /** As of the app; a field that it does not name is the app's. */
  readonly body?: Partial<BodyOptions>
}

type Options<Request> = Partial<RateLimitOptions<Request>>

/** Options whose fields a route takes over one by one, too. */
const GROUPS = ['count', 'body', 'enforce', 'unavailable'] as const

/**
 * The options of a route's limiter: its own, and the app's where it names none. A route that names an option `undefined` has
 * none.
 *
 * @throws SluiceError `INVALID_POLICY` where part of a limit is named that the app has no other part of
 */
export function inheritOptions<Request>(
  { where, from }: Inheriting,
  app: Options<Request>,
  own: InheritingOptions<Request>,
): RateLimitOptions<Request> {
  const { name: _name, limit, window, limits, tiers, tier, policies, priority, ...defaults } = app
  const ofPolicy: Options<Request> = { limit, window, limits, tiers, tier, policies }
  const inherited: Options<Request> = { ...defaults, ...policyFor({ where, from }, ofPolicy, { priority }, own) }
  const groups = GROUPS.filter((group) => isFields(own[group]) && isFields(app[group])).map((group) => [
    group,
    inheritFields(app[group] as Fields, own[group] as Fields),
  ])
  for (const option of excludedBy(own)) delete inherited[option]
  // A field that neither names is missed where the options are checked.
  return { ...withoutUndefined(inherited), ...own, ...Object.fromEntries(groups) } as RateLimitOptions<Request>
}

/** The options of the app that a route's own exclude, or it would be rejected for one that it never named. */
function excludedBy<Request>({ policies, count, onDeny }: InheritingOptions<Request>): ('ban' | 'count' | 'onDeny')[] {
  // The policies of a document have their own.
  if (policies !== undefined) return ['ban', 'onDeny']
  if (count !== undefined) return ['onDeny']
  return onDeny === 'charge' ? ['count'] : []
}

/** `where`: the route, for errors. `from`: the app's limiter in words, such as "the plugin". */
interface Inheriting {
  readonly where: string
  readonly from: string
}

type Fields = Readonly<Record<string, unknown>>

function isFields(group: unknown): group is Fields {
  return typeof group === 'object' && group !== null && !Array.isArray(group)
}

/**
 * The fields of a group. A route does not take over what one of its own excludes, or it would be rejected for a field that it
 * never named.
 */
function inheritFields(app: Fields, own: Fields): Fields {
  const { mode, decide = 'local', share } = own
  const isFull = Object.hasOwn(own, 'percent') && own.percent === undefined
  const excluded: Readonly<Record<string, boolean>> = {
    mode: own.percent !== undefined,
    percent: mode === 'report',
    salt: mode === 'report' || isFull,
    decide: share !== undefined,
    share: decide !== 'local',
  }
  const kept = Object.entries(withoutUndefined(app)).filter(([field]) => !excluded[field])
  return { ...Object.fromEntries(kept), ...own }
}

function withoutUndefined(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}

/**
 * The part of the app's limits that a route inherits: all where it names none, and the other half where it names a limit or
 * a window alone. The options that decide them come with them.
 */
function policyFor<Request>(
  { where, from }: Inheriting,
  app: Options<Request>,
  decidedBy: Options<Request>,
  own: InheritingOptions<Request>,
): Options<Request> {
  if (own.limits !== undefined || own.tiers !== undefined || own.policies !== undefined) return {}
  if (own.limit !== undefined && own.window !== undefined) return {}
  if (own.limit === undefined && own.window === undefined) {
    // A `tier` of its own selects one of the app's tiers.
    return { ...app, ...decidedBy }
  }
  const [named, missing] = own.limit === undefined ? (['window', 'limit'] as const) : (['limit', 'window'] as const)
  if (app[missing] !== undefined) return { [missing]: app[missing], ...decidedBy }
  const why = app.limits || app.tiers ? `, as ${from} has ${app.limits ? 'limits' : 'tiers'}` : ''
  throw new SluiceError('INVALID_POLICY', `${where}: ${named}: expected a ${missing} beside it${why}`)
}
