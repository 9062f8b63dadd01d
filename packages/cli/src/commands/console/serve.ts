import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { userInfo } from 'node:os'
import { type Console, Link, makeConsole, refuseForwarded } from '@sluice/console/internal'
import type { Store } from '@sluice/core'
import { pathOf } from '@sluice/core/internal'
import type { Policies } from '@sluice/policies'
import * as bounds from '../../serve/bounds.js'

/** Connections at a time: one person uses it. */
const MAX_CONNECTIONS = 100

export interface ConsoleSettings {
  readonly store: Store
  readonly documents: readonly { readonly policies: Policies; readonly name: string }[]
  readonly lists: readonly string[]
  readonly port: number
  readonly readOnly: boolean
}

/** A console of this machine. @throws Node's error where it cannot listen */
export async function startConsole(
  settings: ConsoleSettings,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  let console: Console<IncomingMessage> | undefined
  const server = createServer({ headersTimeout: bounds.HEADERS_WITHIN_MS, requestTimeout: bounds.REQUEST_WITHIN_MS })
  server.maxConnections = MAX_CONNECTIONS
  server.on('request', (raw, response) => {
    const { url = '/', socket } = raw
    void console?.serve({
      request: raw,
      raw,
      response,
      path: pathOf(url),
      ip: socket.remoteAddress,
      parsed: undefined,
    })
  })
  await listening(server, settings.port)
  const { port } = server.address() as AddressInfo
  const link = new Link()
  console = consoleAt(port, link, settings)
  return {
    url: `http://127.0.0.1:${port}/#${link.secret}`,
    async close() {
      console?.close()
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      await closed
    },
  }
}

function consoleAt(port: number, link: Link, { store, documents, lists, readOnly }: ConsoleSettings) {
  const operator = { name: userInfo().username.slice(0, 100) || 'sluice', may: readOnly ? 'read' : 'act' }
  return makeConsole<IncomingMessage>(
    {
      store,
      policies: documents,
      lists,
      readOnly,
      hosts: [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`],
      authorize: (request) => link.isShownIn(request) && operator,
    },
    {
      open: { '/api/session': { method: 'POST', run: (exchange) => link.open(exchange) } },
      check: refuseForwarded,
      reports: false,
    },
  )
}

function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
}
