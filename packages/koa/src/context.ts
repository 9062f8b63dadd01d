import { type HttpContext, headerText, pathOf, warnOfOpenProxy } from '@sluice/core'
import type { Context } from 'koa'

/** Koa's answers to what the core asks of a request. */
export class KoaContext implements HttpContext<Context> {
  readonly request: Context

  constructor(ctx: Context) {
    this.request = ctx
  }

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

  get method(): string {
    return this.request.method
  }

  get path(): string {
    return pathOf(this.request.originalUrl)
  }

  /** Known to middleware on a route of `@koa/router`. */
  get route(): string | undefined {
    const path: unknown = this.request._matchedRoute
    return path === undefined ? undefined : String(path)
  }

  header(name: string): string | undefined {
    return headerText(this.request.headers[name])
  }

  getResponseHeader(name: string): string | undefined {
    return headerText(this.request.res.getHeader(name))
  }
}
