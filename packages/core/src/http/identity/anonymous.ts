import type { Nobody } from '../../limiter.js'
import { oneOf } from '../../limits/checks.js'
import { byIp, type IpOptions, ipKey } from './ip.js'
import { needsContext } from './needs-context.js'

/** What becomes of requests whose key function gives undefined, null or an empty text. */
export type AnonymousOption = 'error' | 'by-ip' | 'skip'

/** No header and no cookie can hold it, so few keys begin with it; those that do are refused. */
const PREFIX = '\0ip:'

/** The key of an anonymous client under `anonymous: 'by-ip'`: for `limiter.block(anonymousKey('192.0.2.1'), …)`. */
export function anonymousKey(address: string, options: IpOptions = {}): string {
  return PREFIX + ipKey(address, options)
}

/** @throws SluiceError `INVALID_POLICY` */
export function nobodyBy<Request>(where: string, option: unknown): Nobody<Request> | undefined {
  const choice = oneOf<AnonymousOption>(where, 'anonymous', option, ['error', 'by-ip', 'skip'])
  if (choice === 'error') return undefined
  if (choice === 'skip') return { identify: () => undefined, isTheirs: () => false }
  const address = byIp<Request>()
  return {
    identify: (request, context) => `${PREFIX}${address(request, needsContext('anonymous', context))}`,
    isTheirs: (key) => key.startsWith(PREFIX),
  }
}
