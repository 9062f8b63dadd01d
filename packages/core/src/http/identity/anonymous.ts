import { ofKind } from '../../policy/keyed.js'
import type { KeyFunction } from '../../policy/limits/limit.js'
import { oneOf } from '../../util/validate.js'
import type { LimiterWarning, Warnings } from '../../util/warnings.js'
import { byIp } from './ip.js'
import { MissingUsers } from './missing-users.js'

/** What happens to requests whose key function returns undefined, null or an empty text. */
export type AnonymousOption = 'error' | 'by-ip' | 'skip'

/** How requests without a key of their own are counted. */
export interface AnonymousPolicy<Request> {
  /** The key that is counted instead; undefined if such requests are not limited. */
  readonly key: KeyFunction<Request> | undefined
  readonly missing: MissingUsers
}

/**
 * Undefined where a missing key is an error.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function anonymousBy<Request>(
  where: string,
  option: unknown,
  warnings: Warnings<LimiterWarning>,
): AnonymousPolicy<Request> | undefined {
  const choice = oneOf<AnonymousOption>(where, 'anonymous', option, ['error', 'by-ip', 'skip'])
  if (choice === 'error') return undefined
  const becomes = choice === 'skip' ? 'are not limited' : 'are counted by address'
  const missing = new MissingUsers((kind) =>
    warnings.emit(
      'SLUICE_NO_USER',
      `${where}: the key function of the kind ${kind} found nothing in any of the first requests, which ${becomes}, by ` +
        `anonymous: ${choice}: let the limiter run after what authenticates requests`,
    ),
  )
  return { key: choice === 'skip' ? undefined : ofKind('anonymous', 'key', 'anonymous', byIp<Request>()), missing }
}

/** Every request has keys of these kinds, so no other key is counted instead of them. */
const NEVER_MISSING = ['ip', 'everyone', 'path', 'method']

export function mayBeMissing(kind: string): boolean {
  return !NEVER_MISSING.includes(kind)
}
