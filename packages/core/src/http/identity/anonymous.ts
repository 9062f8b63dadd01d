import { ofKind } from '../../policy/keyed.js'
import type { KeyFunction } from '../../policy/limits/limit.js'
import { oneOf } from '../../util/validate.js'
import { byIp } from './ip.js'

/** What happens to requests whose key function returns undefined, null or an empty text. */
export type AnonymousOption = 'error' | 'by-ip' | 'skip'

/** How requests without a key of their own are counted. */
export interface AnonymousPolicy<Request> {
  /** The key that is counted instead; undefined if such requests are not limited. */
  readonly key: KeyFunction<Request> | undefined
}

/**
 * Undefined where a missing key is an error.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function anonymousBy<Request>(where: string, option: unknown): AnonymousPolicy<Request> | undefined {
  const choice = oneOf<AnonymousOption>(where, 'anonymous', option, ['error', 'by-ip', 'skip'])
  if (choice === 'error') return undefined
  return { key: choice === 'skip' ? undefined : ofKind('anonymous', 'key', 'anonymous', byIp<Request>()) }
}

/** Every request has keys of these kinds, so no other key is counted instead of them. */
const NEVER_MISSING = ['ip', 'everyone', 'path', 'method']

export function mayBeMissing(kind: string): boolean {
  return !NEVER_MISSING.includes(kind)
}
