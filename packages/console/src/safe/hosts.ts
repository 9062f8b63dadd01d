import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { ownFieldsOf } from '@sluice/core/internal'
import { Problem } from '../problem.js'

/** The host of a request, as the client sends it; over HTTP/2 its authority. */
export function hostOf({ headers }: IncomingMessage): string {
  const { host, ':authority': authority } = ownFieldsOf(headers)
  return String(host ?? authority ?? '').toLowerCase()
}

/**
 * Refuses requests to other hosts. A page may point a name of its own at this server (DNS rebinding): the browser then takes the
 * console for a part of that page, and only the host shows it. A cookie or an `Authorization` header shows nothing: the page can
 * set both for its own name.
 *
 * @throws Problem
 */
export function checkHost(raw: IncomingMessage, hosts: ReadonlySet<string> | undefined): void {
  const host = hostOf(raw)
  if (hosts ? hosts.has(host) : isFixedHost(host)) return
  throw new Problem(
    403,
    hosts
      ? 'the console does not answer this host'
      : "without the option hosts, the console answers only an IP address and localhost: set hosts: ['admin.example.com'], with your own host",
  )
}

/** Whether a host, in lower case, always means the same machine: an IP address, or `localhost`. */
export function isFixedHost(host: string): boolean {
  const name = host.replace(/:\d+$/, '')
  if (name === 'localhost') return true
  return name.startsWith('[') ? name.endsWith(']') && isIP(name.slice(1, -1)) === 6 : isIP(name) === 4
}
