import { checkedKey, isMissing } from '../../policy/key.js'
import { kindOf, ofKind } from '../../policy/keyed.js'
import type { KeyFunction } from '../../policy/limits/limit.js'
import type { Policy } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import { isSecretKind, startOf } from '../../store/identity.js'
import { isThenable } from '../../util/thenable.js'
import { oneOf } from '../../util/validate.js'
import type { LimiterWarning, Warnings } from '../../util/warnings.js'
import { ignorePromises, type MaybePromise, whenAllKnown } from '../../util/when-known.js'
import { byIp } from './ip.js'

/** The treatment of requests whose key function returns undefined, null or an empty text. */
export type AnonymousOption = 'error' | 'by-ip' | 'skip'

/** Counts requests without a key of their own. */
export class AnonymousRequests<Request> {
  /** The key that is counted instead; undefined if such requests are not limited. */
  readonly key: KeyFunction<Request> | undefined
  readonly #start: string
  readonly #look: Look

  constructor(key: KeyFunction<Request> | undefined, look: Look) {
    this.key = key
    this.#start = startOf(kindOf(key))
    this.#look = look
  }

  /** The identities of a request; undefined for one that is not limited because a key is missing. */
  identitiesOf(policy: Policy<Request>, context: HttpContext<Request>): MaybePromise<string[] | undefined> {
    const { keys, starts, where } = policy
    const { request } = context
    const values: unknown[] = []
    try {
      for (const key of keys) values.push(key ? key(request, context) : request)
      // Called before the promises resolve, while the request is unchanged.
      const anonymous = values.some(isThenable) ? this.#identityOf(policy, context) : undefined
      return whenAllKnown(values, (known) => {
        this.#look(context, keys, known)
        const identities: string[] = []
        for (const [i, value] of known.entries()) {
          if (!isMissing(value)) identities.push(starts[i] + checkedKey(where, value, true))
          else if (!this.key) return undefined
          else identities.push(anonymous ?? (this.#identityOf(policy, context) as string))
        }
        return identities
      })
    } catch (error) {
      ignorePromises(values)
      throw error
    }
  }

  /** The identity of a request without a key; undefined if such requests are not limited. */
  #identityOf({ where }: Policy<Request>, context: HttpContext<Request>): string | undefined {
    return this.key && this.#start + checkedKey(where, this.key(context.request, context), true)
  }
}

/**
 * Undefined if a missing key is an error.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function anonymousBy<Request>(
  where: string,
  option: unknown = 'error',
  warnings: Warnings<LimiterWarning>,
): AnonymousRequests<Request> | undefined {
  const choice = oneOf<AnonymousOption>(where, 'anonymous', option, ['error', 'by-ip', 'skip'])
  if (choice === 'error') return undefined
  const becomes = choice === 'skip' ? 'are not limited' : 'are counted by address'
  const look = missingUsers((kind) =>
    warnings.emit(
      'SLUICE_NO_USER',
      `${where}: the key function of the kind ${kind} found nothing in any of the first requests, which ${becomes}, by ` +
        `anonymous: ${choice}: run the limiter after the authentication`,
    ),
  )
  const key = choice === 'skip' ? undefined : ofKind('anonymous', 'key', 'anonymous', byIp<Request>())
  return new AnonymousRequests(key, look)
}

/** Every request has keys of these kinds, so no other key replaces them. */
const NEVER_MISSING = ['ip', 'everyone', 'path', 'method']

export function mayBeMissing(kind: string): boolean {
  return !NEVER_MISSING.includes(kind)
}

/** A function that finds no user in this many requests is taken to find none ever. */
const LOOKED_AT = 100

/** Inspects the keys of a request and their values. */
type Look = (context: object, keys: readonly (KeyFunction<never> | undefined)[], values: readonly unknown[]) => void

/**
 * Watches the first requests of a limiter for key functions of the application that never find a user. Calls `warn` once,
 * with the kind of each.
 */
function missingUsers(warn: (kind: string) => void): Look {
  const called = new Set<string>()
  const found = new Set<string>()
  /** Requests seen: the keys of a request that waits for its turn are read again. */
  const counted = new WeakSet<object>()
  let left = LOOKED_AT
  return (context, keys, values) => {
    if (left === 0) return
    let hasCalled = false
    for (const [i, key] of keys.entries()) {
      const kind = kindOf(key)
      if (!isOfUsers(kind)) continue
      hasCalled = true
      called.add(kind)
      if (!isMissing(values[i])) found.add(kind)
    }
    if (!hasCalled || counted.has(context)) return
    counted.add(context)
    if (--left > 0) return
    for (const kind of called) if (!found.has(kind)) warn(kind)
  }
}

/** Whether a kind is `byUser(fn)` or a plain function. A missing header or cookie proves nothing about the application. */
function isOfUsers(kind: string): boolean {
  const parts = kind.split('+')
  return parts.some((part) => part === 'user' || part === 'key') && !isSecretKind(kind)
}
