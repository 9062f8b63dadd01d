import { withTraits } from '../../policy/keyed.js'
import type { KeyFunction } from '../../policy/limits/limit.js'
import type { HttpContext } from '../../request/context.js'
import { invalidPolicy } from '../../util/errors.js'
import { knowFactories } from '../../util/factories.js'
import { knownOptions } from '../../util/validate.js'
import { emitWarning } from '../../util/warnings.js'
import { needsContext } from './needs-context.js'

export interface RouteOptions {
  /**
   * Where the router is mounted, such as `'/api/v1'`: put before the route's pattern. For Express, which gives a request
   * what the client wrote there, but not the pattern. @default ''
   */
  readonly mount?: string
}

/**
 * The pattern of the route, such as `/users/:id`; nothing of it is chosen by the client. In Express it is known only to
 * middleware on the route itself, and without what the router is mounted at: that is for `mount` to say.
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
      if (see && context.mountedRoute) see(context.mountedRoute, route, context)
      return mount + route
    },
    { kind: 'route', madeOf: [mount] },
  )
}

/** Finds routes of different routers that have one name, and warns of the first. */
function mountedRoutes() {
  const seen = new WeakSet<object>()
  /** Where the first route of each method and name was reached. As many as the application has routes. */
  const mounts = new Map<string, string>()
  let hasWarned = false
  return (handle: object, route: string, { method, mountPath = '' }: Pick<HttpContext, 'method' | 'mountPath'>) => {
    if (hasWarned || seen.has(handle)) return
    seen.add(handle)
    // Routes of two methods of one path are two routes with one name, as they should be.
    const name = `${method} ${route}`
    const mount = mountPath.toLowerCase()
    const first = mounts.get(name)
    if (first === undefined) mounts.set(name, mount)
    if (first === undefined || first === mount) return
    hasWarned = true
    mounts.clear()
    emitWarning(
      'SLUICE_AMBIGUOUS_ROUTE',
      `byRoute: routes of several routers are all called ${JSON.stringify(route)} and share their counts, as Express does not ` +
        "tell where a router is mounted; give each a limiter with byRoute({ mount: '/where' })",
    )
  }
}

knowFactories({ 'byRoute()': byRoute })
