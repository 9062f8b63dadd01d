import type { HttpContext, ProxyTrust } from '../request/context.js'
import { propertyOf } from '../util/property-of.js'
import { emitWarning, type Warnings } from '../util/warnings.js'

type TrustInEveryone = Extract<ProxyTrust, object>

/** Apps whose setting has caused a warning: once each, however many limiters they have. */
const warnedApps = new WeakSet<object>()

/**
 * Whether a client can choose its address, as the framework trusts `X-Forwarded-For` from everyone. Nothing may be
 * granted by address then. Warns about it, once per app.
 */
export function isAddressForgeable(
  context: Pick<HttpContext, 'proxyTrust'>,
  emit: Warnings<'SLUICE_OPEN_PROXY'>['emit'] = emitWarning,
): boolean {
  const isOpen = hasOpenProxy(context, warnedApps, ({ everyone, remedy }) =>
    emit(
      'SLUICE_OPEN_PROXY',
      `${everyone} trusts X-Forwarded-For from everyone, so any client can choose its address and escape limits by IP; ` +
        `allow lists of addresses, and overrides that raise limits for addresses, match nobody; ${remedy}`,
    ),
  )
  lastTrust = isOpen ? TRUST_IN_EVERYONE : (propertyOf(context, 'proxyTrust') ?? (lastTrust && 'none'))
  return isOpen
}

/** In place of the trust of an app that is not known. It has no warning of its own. */
const TRUST_IN_EVERYONE: TrustInEveryone = { everyone: 'the app', remedy: '', app: {} }
warnedApps.add(TRUST_IN_EVERYONE.app)
let lastTrust: ProxyTrust | undefined

/** The trust of the app whose request was last looked at in this process, for a request that is known in part. Undefined before. */
export function lastProxyTrust(): ProxyTrust | undefined {
  return lastTrust
}

/** The same with a warning of the caller, which is emitted once for each app that is not in `warned`. */
export function hasOpenProxy(
  context: Pick<HttpContext, 'proxyTrust'>,
  warned: WeakSet<object>,
  warn: (trust: TrustInEveryone) => void,
): boolean {
  const proxyTrust = propertyOf(context, 'proxyTrust')
  if (typeof proxyTrust !== 'object') return false
  if (!warned.has(proxyTrust.app)) {
    warned.add(proxyTrust.app)
    warn(proxyTrust)
  }
  return true
}
