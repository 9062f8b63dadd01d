import type { ProxyTrust } from '@sluice/core'
import { noSignedCookies, RequestContext, signedCookieText } from '@sluice/core/http'
import type { Request, Response } from 'express'

/** Express's answers to what the core asks of a request. */
export class ExpressContext extends RequestContext<Request> {
  readonly response: Response

  constructor(request: Request, response: Response) {
    super(request)
    this.response = response
  }

  /** By the app's `trust proxy` setting. */
  get ip(): string | undefined {
    return this.request.ip
  }

  get proxyTrust(): ProxyTrust {
    const { app } = this.request
    const setting: unknown = app.settings['trust proxy']
    if (setting !== true) return setting ? 'named' : 'none'
    return { everyone: "app.set('trust proxy', true)", remedy: 'name your proxies, or how many there are', app }
  }

  /**
   * Known once a route has matched: to middleware on the route, not to `app.use`. Without what the router is mounted at:
   * of that Express shows what the client wrote, `baseUrl`, which is another one in upper case and for each parameter.
   */
  get route(): string | undefined {
    const path: unknown = this.request.route?.path
    return path === undefined ? undefined : String(path)
  }

  get mountedRoute(): object | undefined {
    return this.request.baseUrl === '' ? undefined : this.request.route
  }

  get mountPath(): string {
    return this.request.baseUrl
  }

  /** As cookie-parser has verified it. */
  signedCookie(name: string): string | undefined {
    // Without a secret, cookie-parser verifies none, and says so nowhere else.
    const { signedCookies, secret } = this.request as Request & { secret?: unknown }
    if (!signedCookies || !secret) throw noSignedCookies('use cookie-parser with a secret before this limiter')
    return Object.hasOwn(signedCookies, name) ? signedCookieText(signedCookies[name]) : undefined
  }

  /** `res.sendFile` fails once headers have been sent. */
  disableResponse(): void {
    this.response.sendFile = (...args: unknown[]) => {
      const callback = args.at(-1)
      if (typeof callback === 'function') process.nextTick(callback as () => void)
    }
  }
}
