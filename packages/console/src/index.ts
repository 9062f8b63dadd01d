import type { IncomingMessage, ServerResponse } from 'node:http'
import { pathOf } from '@sluice/core/internal'
import { makeConsole } from './console.js'
import type { ConsoleOptions } from './options.js'

export type { NamedIdentity, NameOf } from './identity/given.js'
export type { Authorize, ConsoleOptions, NamedPolicies, Operator } from './options.js'
export { recordRefusals } from './refusals.js'
export { recordTraffic } from './traffic/record-traffic.js'

/** The console as a listener of `node:http`. `close` ends its notes of refusals. */
export type ConsoleListener = ((request: IncomingMessage, response: ServerResponse) => void) & { close(): void }

/**
 * The console for `node:http`, at the root of a server.
 *
 * @example createServer(consoleFor({ store, limiters, authorize, hosts })).listen(9191, '127.0.0.1')
 * @throws SluiceError `INVALID_POLICY`
 */
export function consoleFor(options: ConsoleOptions<IncomingMessage>): ConsoleListener {
  const { serve, close } = makeConsole(options)
  function sluiceConsole(request: IncomingMessage, response: ServerResponse): void {
    const { url, socket } = request
    void serve({
      request,
      raw: request,
      response,
      path: pathOf(url ?? '/'),
      ip: socket.remoteAddress,
      parsed: undefined,
    })
  }
  return Object.assign(sluiceConsole, { close })
}
