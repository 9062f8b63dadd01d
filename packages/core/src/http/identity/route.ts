import { withTraits } from '../../policy/keyed.js'
import type { KeyFunction } from '../../policy/limits/limit.js'
import type { HttpContext } from '../../request/context.js'
import { invalidPolicy } from '../../util/errors.js'
import { knowFactories } from '../../util/factories.js'
import { propertyOf } from '../../util/property-of.js'
import { knownOptions } from '../../util/validate.js'
import { emitWarning } from '../../util/warnings.js'
import { needsContext } from './needs-context.js'

export interface RouteOptions {
  /**
   * The path at which the router is mounted, such as `'/api/v1'`.
   *
   * It precedes the route's pattern. For Express, which gives a request the path that the client wrote there, but not
   * the pattern.
   * @default ''
   */
  readonly mount?: string
}

/**
 * The pattern of the route, such as `/users/:id`; the client chooses nothing of it. In Express, only middleware on the route
 * itself knows the pattern, and it lacks the path at which the router is mounted: `mount` adds that.
 *
 * Where routes of several Express routers have one name and share its counts, the process warns once (`SluiceWarning`,
 * code `SLUICE_AMBIGUOUS_ROUTE`).
 *
 * @throws SluiceError `INVALID_POLICY`; per request `INVALID_KEY` where no route is known
 */
export function byRoute<Subject>(options: RouteOptions = {}): KeyFunction<Subject> {
  knownOptions('byRoute', options, ['mount'])
  const { mount = '' } = options
  if (typeof mount !== 'string' || (mount !== '' && !/^\/.*[^/]$/.test(mount))) {
    invalidPolicy('byRoute', 'mount', 'a path such as "/api/v1", without a slash at the end', mount)
  }
  const see = mount === '' ? mountedRoutes() : undefined
  return withTraits<Subject>(
    (_request, given) => {
      const context = needsContext('byRoute', given)
      const { route } = context
      if (route === undefined) return undefined
      const mounted = see && propertyOf(context, 'mountedRoute')
      if (mounted) see(mounted, route, context)
      return mount + route
    },
    { kind: 'route', madeOf: [mount] },
  )
}

/** Finds routes of different routers that have one name, and warns about the first. */
function mountedRoutes() {
  const seen = new WeakSet<object>()
  /** The mount path of the first route of each method and name. As many entries as the application has routes. */
  const mounts = new Map<string, string>()
  let hasWarned = false
  return (handle: object, route: string, context: HttpContext) => {
    if (hasWarned || seen.has(handle)) return
    seen.add(handle)
    // Two methods of one path are two routes with one name, which is correct.
    const name = `${context.method} ${route}`
    const mount = (propertyOf(context, 'mountPath') ?? '').toLowerCase()
    const first = mounts.get(name)
    if (first === undefined) mounts.set(name, mount)
    if (first === undefined || first === mount) return
    hasWarned = true
    mounts.clear()
    emitWarning(
      'SLUICE_AMBIGUOUS_ROUTE',
      `byRoute: routes of several routers are all called ${JSON.stringify(route)} and share their counts, as Express does not ` +
        "show where a router is mounted; give each a limiter with byRoute({ mount: '/where' })",
    )
  }
}

knowFactories({ 'byRoute()': byRoute })
