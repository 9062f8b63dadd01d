import type { ServerResponse } from 'node:http'
import { SluiceError } from '@sluice/core'
import { propertyOf } from '@sluice/core/internal'
import type { Context, Middleware } from 'koa'
import { makeConsole } from '../console.js'
import type { ConsoleOptions } from '../options.js'

export type { Authorize, ConsoleOptions, NamedPolicies, Operator } from '../options.js'

export interface KoaConsoleOptions extends ConsoleOptions<Context> {
  /** The path of the console, such as `/sluice`: Koa has no mounting. */
  readonly path: string
}

/** The console as a middleware of Koa. `close` ends its notes of refusals. */
export type ConsoleMiddleware = Middleware & { close(): void }

/**
 * The console for Koa 2 and 3, at a path.
 *
 * @example app.use(consoleFor({ path: '/sluice', store, limiters, authorize }))
 * @throws SluiceError `INVALID_POLICY`
 */
export function consoleFor({ path: root, ...options }: KoaConsoleOptions): ConsoleMiddleware {
  if (typeof root !== 'string' || !/^(\/[\w.~-]+)+$/.test(root)) {
    throw new SluiceError('INVALID_POLICY', 'consoleFor: path: expected a path such as "/sluice"')
  }
  const { serve, close } = makeConsole(options)
  const sluiceConsole: Middleware = async (ctx, next) => {
    const { path } = ctx
    if (path !== root && !path.startsWith(`${root}/`)) return next()
    const parsed = propertyOf(ctx.request as { body?: unknown }, 'body')
    // The response is written as in other frameworks, whatever middleware sets afterwards.
    ctx.respond = false
    await serve({
      request: ctx,
      raw: ctx.req,
      response: ctx.res,
      path: path.slice(root.length) || '/',
      ip: ctx.ip,
      parsed,
    })
    ignoreHeaders(ctx.res)
  }
  return Object.assign(sluiceConsole, { close })
}

/** The response is sent. A cookie that a middleware sets after `next()` would throw, and is left out. */
function ignoreHeaders(response: ServerResponse): void {
  const ignore = () => response
  Object.assign(response, { setHeader: ignore, appendHeader: ignore, removeHeader: ignore })
}
