import { headerText, noSignedCookies, RequestContext, warnOfOpenProxy } from '@sluice/core'
import type { Context } from 'koa'

/** Koa's answers to what the core asks of a request. */
export class KoaContext extends RequestContext<Context> {
  get response() {
    return this.request.res
  }

  /** By the app's `proxy` settings. */
  get ip(): string | undefined {
    const { app } = this.request
    if (app.proxy && !(app.maxIpsCount > 0)) {
      warnOfOpenProxy(app, 'app.proxy without maxIpsCount', 'set maxIpsCount to how many proxies there are')
    }
    return this.request.ip
  }

  get trustsProxies(): boolean {
    return this.request.app.proxy
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

  getResponseHeader(name: string): string | undefined {
    return headerText(this.request.res.getHeader(name))
  }
}
