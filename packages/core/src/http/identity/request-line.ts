// Keys of the request line, and that of all requests. Lists do not need them, as they need those of headers.
import { withTraits } from '../../policy/keyed.js'
import type { KeyFunction } from '../../policy/limits/limit.js'
import { knowFactories } from '../../util/factories.js'
import { knownOptions } from '../../util/validate.js'
import { flag } from './flag.js'
import { foldedPath } from './folded-path.js'
import { needsContext } from './needs-context.js'

const path = withTraits<never>((_request, context) => foldedPath(needsContext('byPath', context).path), {
  kind: 'path',
  normalize: (value) => (value.startsWith('/') ? foldedPath(value) : value),
})
const exactPath = withTraits<never>((_request, context) => needsContext('byPath', context).path, { kind: 'path' })
const withoutHead = (method: string) => (method === 'HEAD' ? 'GET' : method)
const method = withTraits<never>((_request, context) => withoutHead(needsContext('byMethod', context).method), {
  kind: 'method',
  normalize: withoutHead,
})
const EVERYONE = 'everyone'
const all = withTraits<unknown>(() => EVERYONE, {
  kind: EVERYONE,
  normalize: (value) => (value === EVERYONE ? value : undefined),
})

export interface PathOptions {
  /** Whether to take the path as the client wrote it. Each spelling is a key of its own then. @default false */
  readonly exact?: boolean
}

/**
 * The path without the query, in one spelling in every framework: `/Items`, `/items/`, `//items`, `/%69tems`, `/items;a=b` and
 * `/x/../items` count as `/items`. Clients choose the parameters in a path, so prefer `byRoute` where there are any.
 *
 * @throws SluiceError `INVALID_POLICY`; per request `INVALID_KEY` for paths that routers read differently, such as `/a%2fb/../c`
 */
export function byPath<Subject>(options: PathOptions = {}): KeyFunction<Subject> {
  knownOptions('byPath', options, ['exact'])
  return (flag('byPath', 'exact', options.exact, false) ? exactPath : path) as KeyFunction<Subject>
}

/** The method; HEAD counts as GET. */
export const byMethod = <Subject>(): KeyFunction<Subject> => method as KeyFunction<Subject>

/** One bucket for all requests. Its one identity is `{ everyone: 'everyone' }`. */
export const everyone = <Subject>(): KeyFunction<Subject> => all as KeyFunction<Subject>

knowFactories({ 'byPath()': byPath, 'byMethod()': byMethod, 'everyone()': everyone })
