import { IncomingMessage } from 'node:http'
import { invalidPolicy } from '../../util/errors.js'

/** What requests have beside what Node's prototype has: of frameworks, and of what signs users in. */
const TAKEN = new Set(
  (
    'socket connection rawHeaders complete aborted url method body params query route routeOptions app server res req raw next baseUrl originalUrl ip ips path host ' +
    'hostname protocol secure subdomains xhr fresh stale port is404 id log user session cookies signedCookies'
  ).split(' '),
)

/**
 * Where verdicts are put.
 *
 * @throws SluiceError `INVALID_POLICY` for a name under which something else would be lost
 */
export function requestProperty(where: string, name: unknown): string {
  const isName = typeof name === 'string' && /^[A-Za-z_$][\w$]{0,63}$/.test(name)
  if (isName && !(name in IncomingMessage.prototype) && !TAKEN.has(name)) return name
  invalidPolicy(
    where,
    'requestProperty',
    'a name of 1 to 64 letters, digits, "_" and "$" that requests do not have',
    name,
  )
}
