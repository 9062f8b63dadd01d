import { checkReason, MOST_WEIGHT } from '../../limiter/options.js'
import type { HttpContext } from '../../request/context.js'
import { invalidPolicy } from '../../util/errors.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'
import { PathTree } from '../identity/path-tree.js'

export interface TrapOptions {
  /** How many strikes a request counts for, 1 to 1,000,000: with that of `after`, the first one starts a ban. @default 1 */
  readonly weight?: number
  /** In verdicts of the ban that it starts; up to 200 characters. @default 'trap' */
  readonly reason?: string
  /**
   * Whether a request without `Sec-Fetch-Site` is a strike that has what every browser sends: a page elsewhere may have made it
   * ask. Browsers leave that header out without TLS, and older ones always. @default false
   */
  readonly browsers?: boolean
}

/** What requests for some paths are struck with. */
export interface Trap {
  readonly weight: number
  readonly reason: string
  /**
   * Whether a request is one that clients make on purpose only.
   *
   * @throws RequestFault where its path cannot be read
   */
  readonly catches: (context: HttpContext<unknown>) => boolean
}

/**
 * Strikes clients for paths that only probes ask for, for `ban: { trap }`. A path is struck in every spelling that some router
 * reads so, as `/.ENV`, `//.env`, `/%2eenv`, `/.env;a` and `/x/../.env` for `/.env`; `/.git/*` is all that is
 * below `/.git`.
 *
 * Requests that another page may have made a browser send are no strikes, as an image that points at a trap would ban its
 * viewers: by `Sec-Fetch-Site`. Where that is missing, those with `Referer`, and those with `Accept-Language` and a `User-Agent`
 * as browsers have it. What a browser fetches ahead is no strike either.
 *
 * @example ban: { by: 'ip', after: 10, within: '1h', for: ['1h', '1d'], trap: trap(['/wp-login.php', '/.env'], { weight: 5 }) }
 * @throws SluiceError `INVALID_POLICY`
 */
export function trap(paths: readonly string[], options: TrapOptions = {}): Trap {
  knownOptions('trap', options, ['weight', 'reason', 'browsers'])
  const { weight = 1, reason = 'trap', browsers = false } = options
  wholeNumber('trap', 'weight', weight, 1)
  if (weight > MOST_WEIGHT) invalidPolicy('trap', 'weight', `at most ${MOST_WEIGHT}`, weight)
  checkReason('trap', reason)
  if (typeof browsers !== 'boolean') invalidPolicy('trap', 'browsers', 'true or false', browsers)
  if (!Array.isArray(paths) || paths.length === 0) invalidPolicy('trap', 'paths', 'an array of paths', paths)
  const tree = new PathTree()
  paths.forEach((path: unknown, i) => {
    if (typeof path !== 'string' || !/^\/[^*]+(\/\*)?$/.test(path)) {
      return invalidPolicy('trap', `paths[${i}]`, 'a path such as "/.env" or "/.git/*"', path)
    }
    // A name after a colon is one of its own here.
    tree.add(path.replaceAll('/:', '/%3a') + (path.endsWith('/*') ? '/**' : ''), 0)
  })
  return {
    weight,
    reason,
    catches(context) {
      return tree.find(context.path).length > 0 && isMeant(context, browsers)
    },
  }
}

/** Whether a person or a program asked for it, rather than another page, or a browser ahead of time. */
function isMeant(context: HttpContext<unknown>, browsers: boolean): boolean {
  for (const name of ['sec-purpose', 'purpose', 'x-moz'])
    if (/prefetch|preview/i.test(context.header(name) ?? '')) return false
  const site = context.header('sec-fetch-site')
  // A page of the same site may show what its users wrote.
  if (site !== undefined) return site === 'none'
  return context.header('referer') === undefined && (browsers || !isBrowser(context))
}

/** Whether it has what every browser sends with every request, and tools mostly do not. */
function isBrowser(context: HttpContext<unknown>): boolean {
  return /^Mozilla\//.test(context.header('user-agent') ?? '') && context.header('accept-language') !== undefined
}
