import { headerText, RequestContext, warnOfOpenProxy } from '@sluice/core'
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
    const { app } = this.request
    if (app.settings['trust proxy'] === true) {
      warnOfOpenProxy(app, "app.set('trust proxy', true)", 'name your proxies, or how many there are')
    }
    return this.request.ip
  }

  /** Known once a route has matched: to middleware on the route, not to `app.use`. */
  get route(): string | undefined {
    const path: unknown = this.request.route?.path
    return path === undefined ? undefined : `${this.request.baseUrl}${String(path)}`
  }

  getResponseHeader(name: string): string | undefined {
    return headerText(this.response.getHeader(name))
  }

  /** Files are sent by what fails where headers have been sent. */
  silence(): void {
    this.response.sendFile = (...args: unknown[]) => {
      const callback = args.at(-1)
      if (typeof callback === 'function') process.nextTick(callback as () => void)
    }
  }
}
