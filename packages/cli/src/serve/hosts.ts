import type { IncomingMessage } from 'node:http'
import { isFixedHost } from '@sluice/console/internal'
import { ownFieldsOf } from '@sluice/core/internal'
import { BadInput } from './bad-input.js'
import type { ServerSettings } from './server.js'
import type { Token } from './token.js'

export interface HostSettings extends Pick<ServerSettings, 'tls'> {
  readonly token: Token | undefined
  /** Names in lower case, without a port. */
  readonly allowedHosts: ReadonlySet<string>
}

/**
 * A check of `Host`. A page in a browser on this machine may point a name of its own at a server (DNS rebinding), and only the host
 * shows it. Undefined with a token, which no page has, and with TLS, for which its name has no certificate.
 *
 * @param isBehindGateways whether hosts with another port pass: a gateway may send that of its client, and a page cannot leave the
 * port of the server out
 */
export function hostCheck(
  { token, tls, allowedHosts }: HostSettings,
  isBehindGateways: boolean,
): ((request: IncomingMessage) => void) | undefined {
  if (token || tls) return undefined
  return ({ headers, socket }) => {
    const host = ownFieldsOf(headers).host?.toLowerCase() ?? ''
    const [end = '', port = '80'] = /:(\d+)$/.exec(host) ?? []
    if (isBehindGateways && Number(port) !== socket.localPort) return
    if (isFixedHost(host) || allowedHosts.has(host.slice(0, host.length - end.length))) return
    throw new BadInput(
      421,
      'expected an address, localhost or a name of --allowed-host as the host: any page may point another name here',
      { ends: true },
    )
  }
}
