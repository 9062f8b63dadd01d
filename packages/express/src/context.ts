import type { ProxyTrust } from '@sluice/core'
import { noSignedCookies, RequestContext, signedCookieText } from '@sluice/core/http'
import type { Request, Response } from 'express'

/** The core's view of a request of Express. */
export class ExpressContext extends RequestContext<Request> {
  readonly response: Response

  constructor(request: Request, response: Response) {
    super(request)
    this.response = response
  }

  /** By the app's `trust proxy` setting. Express's own `ip` throws without an app. */
  get ip(): string | undefined {
    const request: Partial<Request> = this.request
    return request.app || Object.hasOwn(request, 'ip') ? request.ip : request.socket?.remoteAddress
  }

  override get proxyTrust(): ProxyTrust {
    const { app } = this.request as Partial<Request>
    // Of a request made by hand, or of another server.
    if (!app) return 'none'
    const { 'trust proxy': setting, 'trust proxy fn': isTrusted } = app.settings as ProxySettings
    if (!setting) return 'none'
    let known = trusts.get(app)
    if (known?.isTrusted !== isTrusted) {
      known = { isTrusted, trust: trustsAll(isTrusted) ? everyone(setting, app) : 'named' }
      trusts.set(app, known)
    }
    return known.trust
  }

  /**
   * Known once a route has matched: to middleware on the route, not to `app.use`. The mount path of the router is left out.
   * Express shows it only as the client wrote it (`baseUrl`), which varies with case and parameters.
   */
  get route(): string | undefined {
    const path: unknown = this.request.route?.path
    return path === undefined ? undefined : String(path)
  }

  override get mountedRoute(): object | undefined {
    return this.mountPath === '' ? undefined : this.request.route
  }

  override get mountPath(): string {
    return this.request.baseUrl ?? ''
  }

  /** As cookie-parser has verified it. */
  signedCookie(name: string): string | undefined {
    // Without a secret, cookie-parser verifies none, and reports it nowhere else.
    const { signedCookies, secret } = this.request as Request & { secret?: unknown }
    if (!signedCookies || !secret) throw noSignedCookies('use cookie-parser with a secret before this limiter')
    return Object.hasOwn(signedCookies, name) ? signedCookieText(signedCookies[name]) : undefined
  }

  /** `res.sendFile` fails once headers have been sent. */
  override disableResponse(): void {
    this.response.sendFile = (...args: unknown[]) => {
      const callback = args.at(-1)
      if (typeof callback === 'function') process.nextTick(callback as () => void)
    }
  }
}

/** Express stores the setting as it was given, and as the function that it makes of it. */
interface ProxySettings {
  readonly 'trust proxy'?: unknown
  readonly 'trust proxy fn': (address: string, hop: number) => boolean
}

/** By app: the setting may change. */
const trusts = new WeakMap<object, { readonly isTrusted: unknown; readonly trust: ProxyTrust }>()

/** Whether a chain of unknown proxies is trusted to its end. It is longer than any configured number of proxies. */
function trustsAll(isTrusted: ProxySettings['trust proxy fn']): boolean {
  try {
    return Array.from({ length: 64 }, (_, hop) => isTrusted(`203.0.113.${hop}`, hop)).every(Boolean)
  } catch {
    // It fails with the address of a request as well, in Express itself.
    return false
  }
}

function everyone(setting: unknown, app: object): ProxyTrust {
  const shown = setting === true ? 'true' : '…'
  return { everyone: `app.set('trust proxy', ${shown})`, remedy: 'name your proxies, or how many there are', app }
}
