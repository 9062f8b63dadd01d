import type { ProxyTrust } from '@sluice/core'
import { noSignedCookies, RequestContext } from '@sluice/core/http'
import type { Context } from 'koa'

/** The core's view of a request of Koa. */
export class KoaContext extends RequestContext<Context> {
  get response() {
    return this.request.res
  }

  /** By the app's `proxy` settings. */
  get ip(): string | undefined {
    return this.request.ip
  }

  override get proxyTrust(): ProxyTrust {
    const { app } = this.request
    if (!app.proxy || app.maxIpsCount > 0) return app.proxy ? 'named' : 'none'
    return {
      everyone: 'app.proxy without maxIpsCount',
      remedy: 'set maxIpsCount to how many proxies there are',
      app,
    }
  }

  /** Known to middleware on a route of `@koa/router`. */
  get route(): string | undefined {
    const path: unknown = this.request._matchedRoute
    return path === undefined ? undefined : String(path)
  }

  /** As `ctx.cookies` verifies it by the app's keys. */
  signedCookie(name: string): string | undefined {
    if (!this.request.app.keys) throw noSignedCookies('set app.keys')
    return this.request.cookies.get(name, { signed: true })
  }
}
