import type { AnonymousPolicy } from '../../limiter/limiter.js'
import { ofKind } from '../../policy/keyed.js'
import { oneOf } from '../../util/validate.js'
import { byIp } from './ip.js'

/** What becomes of requests whose key function gives undefined, null or an empty text. */
export type AnonymousOption = 'error' | 'by-ip' | 'skip'

/**
 * What counts instead of a key that is missing; undefined where that is an error.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function anonymousBy<Request>(where: string, option: unknown): AnonymousPolicy<Request> | undefined {
  const choice = oneOf<AnonymousOption>(where, 'anonymous', option, ['error', 'by-ip', 'skip'])
  if (choice === 'error') return undefined
  return { key: choice === 'skip' ? undefined : ofKind('anonymous', 'key', 'anonymous', byIp<Request>()) }
}
