import { joined, type KeyValue } from '../store/identity.js'
import { invalidPolicy } from '../util/errors.js'
import { knowFactories, refuseFactory } from '../util/factories.js'
import { propertyOf } from '../util/property-of.js'
import { isThenable } from '../util/thenable.js'
import { headerName } from '../util/validate.js'
import { ignorePromises } from '../util/when-known.js'
import { isKeyValue } from './key.js'
import type { KeyFunction, KeyTraits } from './limits/limit.js'

/** Kinds, or beginnings of kinds, of the library's key functions, with the calls of these. */
const TAKEN = new Map([
  ['ip', 'byIp()'],
  ['user', 'byUser((req) => …)'],
  ['everyone', 'everyone()'],
  ['path', 'byPath()'],
  ['route', 'byRoute()'],
  ['method', 'byMethod()'],
  ['credentials', 'byCredentials()'],
  ['header', 'byHeader(name)'],
  ['cookie', 'byCookie(name)'],
  ['anonymous', undefined],
  ['key', undefined],
  // An object literal with `__proto__` has no such property.
  ['__proto__', undefined],
])

/**
 * Names the kind of identity that a key function of yours counts. The name separates its values from those of other keys, and
 * lets you pass them by hand: `limiter.reset({ account: 'ann' })`. Needed where a policy has several functions of yours.
 *
 * @param name 1 to 64 letters, digits, `_` and `-`; none of the kinds there are, such as `ip`
 * @example keyed('account', (req) => req.body?.account)
 * @throws SluiceError `INVALID_POLICY`
 */
export function keyed<Subject>(name: string, key: KeyFunction<Subject>): KeyFunction<Subject> {
  headerName('keyed', 'name', name)
  if (TAKEN.has(name)) {
    const call = TAKEN.get(name)
    const remedy = call === undefined ? 'choose another name' : `use ${call} for that kind, or choose another name`
    invalidPolicy('keyed', 'name', `none of ${[...TAKEN.keys()].join(', ')}`, name, remedy)
  }
  return ofKind('keyed', 'key', name, key)
}

/**
 * A function of the user's under a kind. Where the function is one of the library's, its normalisation of values given by hand
 * stays.
 */
export function ofKind<Subject>(
  where: string,
  field: string,
  kind: string,
  key: KeyFunction<Subject>,
  challenge?: string,
): KeyFunction<Subject> {
  if (typeof key !== 'function') invalidPolicy(where, field, 'a function of the request', key)
  refuseFactory(where, field, key)
  const normalize = propertyOf(key, 'normalize')
  return withTraits((subject, context) => key(subject, context), { kind, normalize, madeOf: [key], challenge })
}

/** A function with the traits of the identities that it yields: frozen, as policies and blocks rely on its kind. */
export function withTraits<Subject>(
  key: (...args: Parameters<KeyFunction<Subject>>) => ReturnType<KeyFunction<Subject>>,
  traits: KeyTraits,
): KeyFunction<Subject> {
  return Object.freeze(Object.assign(key, traits))
}

/**
 * Several keys as one: `compose(byIp(), byPath())` counts each client on each path.
 * Different parts never make the same key, whatever they contain. Its kind is that of its parts, joined by `+`.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function compose<Subject>(...keys: KeyFunction<Subject>[]): KeyFunction<Subject> {
  if (keys.length === 0) invalidPolicy('compose', 'keys', 'at least one key function', undefined)
  keys.forEach((key, i) => {
    if (typeof key !== 'function') invalidPolicy('compose', `keys[${i}]`, 'a key function such as byIp()', key)
    refuseFactory('compose', `keys[${i}]`, key)
  })
  const parts: readonly KeyFunction<Subject>[] = keys.flatMap(partsOf)
  if (parts.length === 1) return parts[0] as KeyFunction<Subject>
  return withTraits(
    (subject, context) => {
      const values: KeyResult[] = []
      let isLate = false
      try {
        for (const key of parts) {
          const value = key(subject, context)
          isLate ||= isThenable(value)
          // A value that is no key makes the whole invalid. The limiter rejects it and shows the value.
          if (!isLate && !isKeyValue(value)) return value
          values.push(value)
        }
      } catch (error) {
        ignorePromises(values)
        throw error
      }
      // All key functions were called at once, before the request could change.
      return isLate ? Promise.all(values).then(whole) : whole(values as KeyValue[])
    },
    { kind: parts.map(kindOf).join('+'), parts, madeOf: parts },
  )
}

knowFactories({ 'keyed(name, fn)': keyed, 'compose(byIp(), byPath())': compose })

type KeyResult = ReturnType<KeyFunction<never>>

function whole(values: readonly Awaited<KeyResult>[]): Awaited<KeyResult> {
  const missing = values.findIndex((value) => !isKeyValue(value))
  return missing < 0 ? joined(values.map(String)) : values[missing]
}

/** The kind of a function's values; without a function, the kind of keys given as text. */
export function kindOf(key: KeyFunction<never> | undefined): string {
  return (key && propertyOf(key, 'kind')) ?? 'key'
}

/** The functions that a function is composed of; else the function itself. */
export function partsOf<Key extends KeyFunction<never>>(key: Key): readonly Key[] {
  return (propertyOf(key, 'parts') as readonly Key[] | undefined) ?? [key]
}

type Key = KeyFunction<never> | undefined

/** Whether two functions yield the same: one function, or made of the same. */
export function isSameKey(a: Key, b: Key): boolean {
  if (a === b) return true
  const ofA = a && propertyOf(a, 'madeOf')
  const ofB = b && propertyOf(b, 'madeOf')
  if (!ofA || !ofB || kindOf(a) !== kindOf(b) || ofA.length !== ofB.length) return false
  return ofA.every((part, i) => {
    const other = ofB[i]
    return (
      part === other ||
      (typeof part === 'function' && typeof other === 'function' && isSameKey(part as Key, other as Key))
    )
  })
}

/** Whether two functions of one kind differ only in how they group addresses: both yield values of an identity given by hand. */
export function isAlike(a: Key, b: Key): boolean {
  if (isSameKey(a, b)) return true
  if (kindOf(a) === 'ip' && kindOf(b) === 'ip') return true
  const ofA = a && propertyOf(a, 'parts')
  const ofB = b && propertyOf(b, 'parts')
  if (!ofA || !ofB || ofA.length !== ofB.length) return false
  return ofA.every((part, i) => isAlike(part, ofB[i]))
}

/**
 * How finely a function groups addresses: among several of one kind, the one with the greatest number yields the smallest groups
 * of IPv4, and among equal ones those of IPv6.
 */
export function finenessOf(key: Key): number {
  const parts = key && propertyOf(key, 'parts')
  if (parts) return parts.reduce((sum, part) => sum + finenessOf(part), 0)
  const bits = key && propertyOf(key, 'bits')
  return bits ? 1000 * bits.ipv4 + bits.ipv6 : 0
}
