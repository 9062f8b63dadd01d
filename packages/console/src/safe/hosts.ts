import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { Problem } from '../problem.js'

/** The host of a request, as the client sends it; over HTTP/2 its authority. */
export function hostOf({ headers }: IncomingMessage): string {
  const authority = headers[':authority']
  return String(headers.host ?? authority ?? '').toLowerCase()
}

/**
 * Refuses requests to other hosts. A page may point a name of its own at this server (DNS rebinding): the browser then takes the
 * console for a part of that page, and only the host shows it.
 *
 * @throws Problem
 */
export function checkHost(raw: IncomingMessage, hosts: ReadonlySet<string> | undefined): void {
  if (hosts ? hosts.has(hostOf(raw)) : hasCredential(raw)) return
  throw new Problem(
    403,
    hosts
      ? 'the console does not answer this host'
      : 'expected a credential, or the option hosts: without both, any page that points its name here could ask',
  )
}

/** Whether a request has what a page of a stranger cannot make a browser send to another name. */
function hasCredential({ headers, socket }: IncomingMessage): boolean {
  if (headers.authorization !== undefined || headers.cookie !== undefined) return true
  return (socket as Partial<TLSSocket> | undefined)?.authorized === true
}
