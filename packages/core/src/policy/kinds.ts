import { isKind, joined, LONGEST_KIND } from '../store/identity.js'
import { invalidKey, invalidPolicy, show, wrongPolicy } from '../util/errors.js'
import { propertyOf } from '../util/property-of.js'
import { checkedKey, isKeyValue } from './key.js'
import { isAlike, kindOf } from './keyed.js'
import type { KeyFunction } from './limits/limit.js'
import type { ReadablePlan } from './plan.js'

type Key = KeyFunction<never> | undefined

/**
 * Rejects key functions that would give one kind several meanings. `known`: those of other tiers, by kind.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function checkKinds(where: string, keys: readonly Key[], known: Map<string, { key: Key; field: string }>): void {
  keys.forEach((key, i) => {
    const field = `${where}: limits[${i}]`
    const kind = kindOf(key)
    if (!isKind(kind)) {
      invalidPolicy(field, 'key', `a kind of up to ${LONGEST_KIND} letters, digits, "_", "-", ".", ":" and "+"`, kind)
    }
    const other = known.get(kind)
    if (other && !isAlike(other.key, key)) {
      const got = `got another function of the kind ${show(kind)} than ${other.field}`
      wrongPolicy(`${field}: key: expected a kind of its own, such as by keyed('name', fn), ${got}`)
    }
    if (!other) known.set(kind, { key, field })
  })
}

/** An identity that was given by hand: its kind is known, its value is not checked yet. */
export interface Given {
  readonly kind: string
  readonly value: unknown
  /** Whether the value is as it is counted, so that it is not normalised or hashed again. */
  readonly isCounted: boolean
}

/** The keys that a policy counts an identity by that was given by hand. */
export interface GivenKeys {
  /** The value as it was given. */
  readonly value: unknown
  /** The identities for stores: several where addresses are grouped in several ways. */
  readonly identities: readonly string[]
  /** The identity of the smallest group. */
  readonly finest: string
  /** The limits that count it, of a whole plan. */
  readonly planOf: (whole: ReadablePlan) => ReadablePlan
}

/**
 * The value that is counted for one that is given by hand.
 *
 * @throws SluiceError `INVALID_KEY`
 */
export function valueFor(where: string, key: Key, { kind, value, isCounted }: Given): string {
  const field = kind === 'key' ? `${where}: key` : `${where}: key: ${kind}`
  if (isCounted) return typeof value === 'string' ? value : invalidKey(field, 'a value as it is counted', value)
  const parts = key && propertyOf(key, 'parts')
  if (!parts) return checkedKey(where, simpleValue(field, key, value))
  if (!Array.isArray(value) || value.length !== parts.length) {
    invalidKey(field, `an array of ${parts.length} values`, value)
  }
  return checkedKey(where, joined(parts.map((part, i) => simpleValue(field, part, value[i]))))
}

function simpleValue(field: string, key: Key, value: unknown): string {
  const text = isKeyValue(value) ? String(value) : ''
  if (text === '') invalidKey(field, 'a non-empty string or a number', value)
  const normalize = key && propertyOf(key, 'normalize')
  return (normalize ? normalize(text) : text) || invalidKey(field, 'a value of this kind', value)
}
