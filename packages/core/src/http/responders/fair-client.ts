import { checkedKey, isMissing } from '../../policy/key.js'
import type { KeyFunction } from '../../policy/limits/limit.js'
import type { HttpContext } from '../../request/context.js'
import { invalidPolicy } from '../../util/errors.js'
import { refuseFactory } from '../../util/factories.js'
import type { Verdict } from '../../verdict/verdict.js'
import { byIp } from '../identity/ip.js'

export interface FairOptions<Request> {
  /**
   * Identifies clients where many wait for one key: a key function such as `byIp()`.
   *
   * Clients are served in turn by units, however many requests each has waiting. Requests without such a key count as
   * one client. `false`: first come, first served.
   * @default `byIp()` where a limit counts many clients together (`everyone()`, `byRoute()`, `byPath()`, `byMethod()`),
   * else `false`
   */
  readonly fairBy?: KeyFunction<Request> | false
}

/** The kinds of identities that many clients share. */
const SHARED = ['everyone', 'route', 'path', 'method']
const isShared = (kind: string) => kind.split('+').every((part) => SHARED.includes(part))

/**
 * Returns a function that identifies the client of a waiting request.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function fairClient<Request>(
  where: string,
  fairBy: KeyFunction<Request> | false | undefined,
): (context: HttpContext<Request>, verdict: Verdict) => Promise<string | undefined> {
  if (fairBy === false) return async () => undefined
  if (fairBy === undefined) {
    const byAddress = byIp<Request>()
    return async (context, verdict) => {
      if (!verdict.limits.some(({ key }) => isShared(key.kind))) return undefined
      try {
        return String(byAddress(context.request, context))
      } catch {
        // A connection without an address, such as a Unix socket's.
        return undefined
      }
    }
  }
  refuseFactory(where, 'fairBy', fairBy)
  if (typeof fairBy !== 'function') invalidPolicy(where, 'fairBy', 'a key function such as byIp(), or false', fairBy)
  return async (context) => {
    const key: unknown = await fairBy(context.request, context)
    return isMissing(key) ? undefined : checkedKey(`${where}: fairBy`, key, true)
  }
}
