import type { HttpContext } from '@sluice/core'
import type { MatchData } from '../document/document.js'

/** The parts of a request that `match` tests beside its path. */
export type RequestHead = Pick<HttpContext<never>, 'method' | 'header'>

/** Why a policy does not apply to a request whose path fits. */
export type Mismatch = 'method' | 'host' | `header ${string}`

/** Whether a request fits all of a policy's `match` but its paths. Undefined if every request does. */
export function requestTest({
  methods,
  hosts,
  headers,
}: MatchData): ((head: RequestHead) => Mismatch | undefined) | undefined {
  // Routers deliver HEAD to the handler of GET.
  const known = methods && new Set(methods.includes('GET') ? [...methods, 'HEAD'] : methods)
  const fields = Object.entries(headers ?? {}).map(([name, value]) => ({ name: name.toLowerCase(), value }))
  const exact = new Set(hosts?.map((host) => host.toLowerCase()))
  const endings = [...exact].filter((host) => host.startsWith('*.')).map((host) => host.slice(1))
  if (!known && !hosts && fields.length === 0) return undefined
  return (head) => {
    if (known && !known.has(head.method)) return 'method'
    if (hosts && !hostsOf(head).some((host) => isOneOf(host, exact, endings))) return 'host'
    for (const { name, value } of fields) {
      const sent = head.header(name)
      if (typeof value === 'boolean' ? (sent !== undefined) !== value : sent !== value) return `header ${name}`
    }
    return undefined
  }
}

/** Over HTTP/2 a request may name two hosts, and frameworks differ in which one they take. */
function hostsOf(head: RequestHead): string[] {
  const authority = head.header(':authority')
  const host = hostOf(head.header('host'))
  return authority === undefined ? [host] : [host, hostOf(authority)]
}

/** Without its port and the dot at its end. As in frameworks, any text after the colon is taken for a port. */
function hostOf(header = ''): string {
  const port = header.indexOf(':', header.startsWith('[') ? header.indexOf(']') + 1 : 0)
  const host = (port < 0 ? header : header.slice(0, port)).toLowerCase()
  return host.endsWith('.') ? host.slice(0, -1) : host
}

function isOneOf(host: string, exact: ReadonlySet<string>, endings: readonly string[]): boolean {
  return exact.has(host) || endings.some((ending) => host.length > ending.length && host.endsWith(ending))
}
