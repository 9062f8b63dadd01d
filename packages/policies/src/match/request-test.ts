import type { HttpContext } from '@sluice/core'
import type { MatchData } from '../document/document.js'

/** What of a request is looked at beside its path. */
export type RequestHead = Pick<HttpContext<never>, 'method' | 'header'>

/** Why a policy is not for a request whose path fits. */
export type Mismatch = 'method' | 'host' | `header ${string}`

/** Tells whether a request fits all of a policy's `match` but its paths. Undefined where every request does. */
export function requestTest({
  methods,
  hosts,
  headers,
}: MatchData): ((head: RequestHead) => Mismatch | undefined) | undefined {
  // Routers deliver HEAD to what handles GET.
  const known = methods && new Set(methods.includes('GET') ? [...methods, 'HEAD'] : methods)
  const fields = Object.entries(headers ?? {}).map(([name, value]) => ({ name: name.toLowerCase(), value }))
  const exact = new Set(hosts?.map((host) => host.toLowerCase()))
  const endings = [...exact].filter((host) => host.startsWith('*.')).map((host) => host.slice(1))
  if (!known && !hosts && fields.length === 0) return undefined
  return (head) => {
    if (known && !known.has(head.method)) return 'method'
    if (hosts && !isOneOf(hostOf(head.header('host')), exact, endings)) return 'host'
    for (const { name, value } of fields) {
      const sent = head.header(name)
      if (typeof value === 'boolean' ? (sent !== undefined) !== value : sent !== value) return `header ${name}`
    }
    return undefined
  }
}

/** Without its port and the dot at its end. */
function hostOf(header = ''): string {
  return header
    .toLowerCase()
    .replace(/:[0-9]{0,5}$/, '')
    .replace(/[.]$/, '')
}

function isOneOf(host: string, exact: ReadonlySet<string>, endings: readonly string[]): boolean {
  return exact.has(host) || endings.some((ending) => host.length > ending.length && host.endsWith(ending))
}
