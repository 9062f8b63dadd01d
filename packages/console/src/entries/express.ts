import { pathOf, propertyOf } from '@sluice/core/internal'
import type { Request, RequestHandler, Response } from 'express'
import { makeConsole } from '../console.js'
import type { ConsoleOptions } from '../options.js'

export type { Authorize, ConsoleOptions, NamedPolicies, Operator } from '../options.js'

/** The console as a middleware of Express. `close` ends its notes of refusals. */
export type ConsoleHandler = RequestHandler & { close(): void }

/**
 * The console for Express 4 and 5, below a path.
 *
 * @example app.use('/sluice', consoleFor({ store, limiters, authorize }))
 * @throws SluiceError `INVALID_POLICY`
 */
export function consoleFor(options: ConsoleOptions<Request>): ConsoleHandler {
  const { serve, close } = makeConsole(options)
  function sluiceConsole(request: Request, response: Response): void {
    const parsed = propertyOf(request, 'body')
    void serve({ request, raw: request, response, path: pathOf(request.url), ip: request.ip, parsed })
  }
  return Object.assign(sluiceConsole, { close })
}
