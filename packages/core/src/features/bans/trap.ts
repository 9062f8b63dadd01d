import { PathTree } from '../../http/identity/path-tree.js'
import type { HttpContext } from '../../request/context.js'
import { invalidPolicy } from '../../util/errors.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'
import { checkReason, MAX_WEIGHT } from './block-options.js'

export interface TrapOptions {
  /** The number of strikes of one request, 1 to 1,000,000. With that of `after`, the first request starts a ban. @default 1 */
  readonly weight?: number
  /** The reason in verdicts of the ban that it starts; up to 200 characters. @default 'trap' */
  readonly reason?: string
  /**
   * Whether a request with the headers of a browser is a strike: without `Sec-Fetch-Site`, or with `Sec-Fetch-Site: none`.
   *
   * Somebody else may have caused it. Browsers omit that header without TLS, and old ones always. They send `none` for an address
   * that was typed, and for a link in a mail, a chat or a QR code.
   * @default false
   */
  readonly browsers?: boolean
}

/** The strikes for requests of some paths. */
export interface Trap {
  readonly weight: number
  readonly reason: string
  /**
   * Whether a client made the request on purpose.
   *
   * @throws RequestFault where its path cannot be read
   */
  readonly catches: (context: HttpContext<unknown>) => boolean
}

/**
 * Counts strikes for paths that only probes request, for `ban: { trap }`. A path is caught in every spelling that some router
 * accepts for it, as `/.ENV`, `//.env`, `/%2eenv`, `/.env;a` and `/x/../.env` for `/.env`. `/.git/*` is every path below
 * `/.git`.
 *
 * Requests of a browser are no strikes: an image or a link that points at a trap would ban those who view or follow it.
 * `Sec-Fetch-Site` shows them. Where that is missing, requests with `Referer` are no strikes, nor those with
 * `Accept-Language` and a browser's `User-Agent`. Requests that a browser makes ahead of time are no strikes either.
 *
 * @example ban: { by: 'ip', after: 10, within: '1h', for: ['1h', '1d'], trap: trap(['/wp-login.php', '/.env'], { weight: 5 }) }
 * @throws SluiceError `INVALID_POLICY`
 */
export function trap(paths: readonly string[], options: TrapOptions = {}): Trap {
  knownOptions('trap', options, ['weight', 'reason', 'browsers'])
  const { weight = 1, reason = 'trap', browsers = false } = options
  wholeNumber('trap', 'weight', weight, 1, MAX_WEIGHT)
  checkReason('trap', reason)
  if (typeof browsers !== 'boolean') invalidPolicy('trap', 'browsers', 'true or false', browsers)
  if (!Array.isArray(paths) || paths.length === 0) invalidPolicy('trap', 'paths', 'an array of paths', paths)
  const tree = new PathTree()
  paths.forEach((path: unknown, i) => {
    if (typeof path !== 'string' || !/^\/[^*]+(\/\*)?$/.test(path)) {
      return invalidPolicy('trap', `paths[${i}]`, 'a path such as "/.env" or "/.git/*"', path)
    }
    // A segment that begins with a colon is literal here.
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

/** Whether a program requested it, rather than a browser, for a page, for a link or ahead of time. */
function isMeant(context: HttpContext<unknown>, browsers: boolean): boolean {
  for (const name of ['sec-purpose', 'purpose', 'x-moz'])
    if (/prefetch|preview/i.test(context.header(name) ?? '')) return false
  const site = context.header('sec-fetch-site')
  // A page of the same site may show what its users wrote, and `none` may be a link in a mail.
  if (site !== undefined) return browsers && site === 'none'
  return context.header('referer') === undefined && (browsers || !isBrowser(context))
}

/** Whether it has the headers that every browser sends with every request, and few tools send. */
function isBrowser(context: HttpContext<unknown>): boolean {
  return /^Mozilla\//.test(context.header('user-agent') ?? '') && context.header('accept-language') !== undefined
}
