import { countedValue, type Identity, isCounted, startOf } from '../store/identity.js'
import { SluiceError, show } from '../util/errors.js'
import { kindOf } from './keyed.js'
import { type Given, type GivenKeys, valueFor } from './kinds.js'
import type { KeyFunction } from './limits/limit.js'
import { planOf } from './plan-of-kind.js'
import type { Policy } from './policy.js'

/** The key that is counted for requests without one of their own. */
export interface ReplacementKey<Subject> {
  readonly key: KeyFunction<Subject>
  /** Whether keys of a kind, which is no composed one, may be missing. */
  readonly mayReplace: (kind: string) => boolean
}

type Replacement = ReplacementKey<never> | undefined

/** The kinds of identities that a policy counts: of its keys, and of the key that may replace them. */
export function kindsOf(policy: Policy<never>, replacement: Replacement): readonly string[] {
  return replacement && replaceable(policy, replacement).length > 0
    ? [...policy.kinds, kindOf(replacement.key)]
    : policy.kinds
}

/** The keys that a policy counts an identity by. Undefined if the policy has no limits of its kind. */
export function keysOf(policy: Policy<never>, replacement: Replacement, given: Given): GivenKeys | undefined {
  if (!replacement || given.kind !== kindOf(replacement.key)) return policy.given(given)
  const indices = replaceable(policy, replacement)
  if (indices.length === 0) return undefined
  const text = startOf(given.kind) + valueFor(policy.where, replacement.key, given)
  const identities = indices.map(() => text)
  return { value: given.value, identities, finest: text, planOf: (whole) => planOf(whole, indices) }
}

/**
 * The kind of an identity that is given by hand, as text or by its kind, and its value, which is not checked yet.
 *
 * @throws SluiceError `INVALID_KEY`, which lists the kinds
 */
export function givenIn(where: string, kinds: readonly string[], identity: unknown): Given {
  if (isPlainObject(identity)) {
    if (isCounted(identity)) return countedIn(where, kinds, identity)
    const [[kind, value] = ['', undefined], ...others] = entriesIn(identity) ?? []
    if (others.length > 0 || !kinds.includes(kind)) wrongIdentity(where, kinds, identity)
    return { kind, value, isCounted: false }
  }
  if (!takesText(kinds)) wrongIdentity(where, kinds, identity)
  return { kind: kinds[0] as string, value: identity, isCounted: false }
}

/** Addresses are grouped by each key in its own way, so they are read like those given by hand. */
function countedIn(where: string, kinds: readonly string[], identity: Identity): Given {
  const { kind, value } = identity
  if (!kinds.includes(kind)) wrongIdentity(where, kinds, identity)
  if (kind === 'ip') return { kind, value, isCounted: false }
  return { kind, value: countedValue(identity), isCounted: true }
}

/** A text is of the only kind. The parts of a composed kind are given one by one, though. */
function takesText([kind, ...others]: readonly string[]): boolean {
  return others.length === 0 && !kind?.includes('+')
}

/** Whether it can only be an identity by its kind: the prototypes of requests differ. */
export function isPlainObject(subject: unknown): subject is object {
  const prototype = prototypeOf(subject)
  return prototype === Object.prototype || prototype === null
}

/** Whether it is data, as JSON may hold it, rather than a request. */
export function isData(subject: unknown): boolean {
  return (
    typeof subject !== 'object' ||
    subject === null ||
    isPlainObject(subject) ||
    prototypeOf(subject) === Array.prototype
  )
}

/** Undefined for a value that is no object, and for a proxy that throws when it is inspected. */
function prototypeOf(subject: unknown): unknown {
  try {
    return typeof subject === 'object' && subject !== null ? Object.getPrototypeOf(subject) : undefined
  } catch {
    return undefined
  }
}

/** The properties of a plain object, each read once. Undefined for any other value, and where reading one throws. */
export function entriesIn(value: unknown): [string, unknown][] | undefined {
  try {
    return isPlainObject(value) ? Object.entries(value) : undefined
  } catch {
    return undefined
  }
}

/** Which keys of a policy may be replaced: those with a part that may be missing. */
function replaceable({ keys }: Policy<never>, { mayReplace }: ReplacementKey<never>): number[] {
  return keys.flatMap((key, i) => (kindOf(key).split('+').some(mayReplace) ? [i] : []))
}

/** @throws SluiceError `INVALID_KEY`, which lists the kinds */
export function wrongIdentity(where: string, kinds: readonly string[], got: unknown): never {
  const examples = kinds.map((kind) => {
    const name = /^\w+$/.test(kind) ? kind : JSON.stringify(kind)
    const values = kind.split('+').map(() => '…')
    return `{ ${name}: ${values.length > 1 ? `[${values.join(', ')}]` : '…'} }`
  })
  const gotKinds = isPlainObject(got) ? (entriesIn(got) ?? []).map(([kind]) => kind) : undefined
  const expected = takesText(kinds)
    ? ['a non-empty string or a number', ...examples].join(', or ')
    : examples.join(' or ')
  const shown = gotKinds ? shownKinds(gotKinds) : show(got)
  throw new SluiceError('INVALID_KEY', `${where}: key: expected ${expected}, got ${shown}`)
}

function shownKinds(kinds: readonly string[]): string {
  if (kinds.length === 1) return `an object of the kind ${show(kinds[0])}`
  const several = kinds.length > 1 ? ', whose limits are apart: one call for each' : ''
  return `an object of ${kinds.length} kinds${several}`
}
