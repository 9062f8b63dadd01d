import { unnamedPath } from '@sluice/core/internal'
import { copied } from '../formats/texts.js'

/** What stands before the name of a resource in the paths of an API. */
const GENERIC = /^(?:api|rest|v\d{1,3})$/
/** Segments that a pattern names in one spelling. */
const PLAIN = /^[a-z\d_~.-]{1,48}$/
/** Of a name, behind which nothing more generic stands. */
const MAX_SEGMENTS = 4
/** Paths whose group is remembered. */
const MAX_KNOWN = 10_000

/**
 * Sorts paths into groups by their first segment, or by the first that says more than `api` or `v1`. A group is named by the
 * pattern of a document that matches it: `/products/**` for `/products/42`. Ids and tokens make no group.
 */
export class PathGroups {
  readonly #known = new Map<string, string | undefined>()

  /** Undefined for a path that no pattern would tell from others. */
  patternOf(path: string): string | undefined {
    const start = startOf(path)
    if (this.#known.has(start)) return this.#known.get(start)
    const pattern = patternOf(start)
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(copied(start), pattern)
    return pattern
  }
}

/** The segments that decide the group. */
function startOf(path: string): string {
  let end = 0
  for (let segments = 0; segments < MAX_SEGMENTS; segments++) {
    const from = end + 1
    const slash = path.indexOf('/', from)
    end = slash < 0 ? path.length : slash
    if (slash < 0 || !GENERIC.test(path.slice(from, end).toLowerCase())) break
  }
  return path.slice(0, end)
}

function patternOf(start: string): string | undefined {
  if (start === '' || start === '/') return '/'
  const lower = start.toLowerCase()
  const segments = lower.slice(1).split('/')
  if (!segments.every((segment) => PLAIN.test(segment)) || segments.some(isDots)) return undefined
  return unnamedPath(lower).includes(':') ? undefined : `${lower}/**`
}

function isDots(segment: string): boolean {
  return segment === '.' || segment === '..'
}
