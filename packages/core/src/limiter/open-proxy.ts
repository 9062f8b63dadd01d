import type { HttpContext } from '../request/context.js'
import { emitWarning, type Warnings } from '../util/warnings.js'

/** Apps whose setting was warned of: once each, however many limiters they have. */
const warnedApps = new WeakSet<object>()

/**
 * Whether any client can choose its address, as the framework trusts `X-Forwarded-For` from everyone. Then nothing may be
 * granted by address. Warns of it, once per app.
 */
export function isAddressForgeable(
  { proxyTrust }: Pick<HttpContext, 'proxyTrust'>,
  emit: Warnings<'SLUICE_OPEN_PROXY'>['emit'] = emitWarning,
): boolean {
  if (typeof proxyTrust !== 'object') return false
  const { everyone, remedy, app } = proxyTrust
  if (!warnedApps.has(app)) {
    warnedApps.add(app)
    emit(
      'SLUICE_OPEN_PROXY',
      `${everyone} trusts X-Forwarded-For from everyone, so any client can choose its address and escape limits by IP; ` +
        `allow lists of addresses, and overrides that raise limits for addresses, match nobody; ${remedy}`,
    )
  }
  return true
}
