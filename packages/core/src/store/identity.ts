/** An identity that a limit counts: a value and its kind. Equal values of two kinds are two identities. */
export interface Identity {
  /** Such as `ip`, `user`, `header:x-api-key`, or `ip+route` of a composed key. */
  readonly kind: string
  /**
   * The value as it is counted: normalised, and hashed if it is secret or long. A composed kind has one value per part,
   * or one hash if the parts are too long together.
   */
  readonly value: string | readonly string[]
}

/** A value by itself. */
export type KeyValue = string | number | bigint

/**
 * An identity given by hand: an object with exactly one kind and its raw value, such as `{ account: 'ann' }`. A
 * composed kind takes an array of values, such as `{ 'ip+route': ['192.0.2.7', '/login'] }`. Or an object with the
 * fields `kind` and `value` of an entry, an event or a verdict: its value is taken as it is counted, and not hashed again.
 */
export type IdentityByKind = Readonly<Record<string, KeyValue | readonly KeyValue[]>> | Identity

/** Maximum characters of a kind and of a value. A hash replaces a longer value. */
export const LONGEST_KIND = 256
export const LONGEST_VALUE = 256

/**
 * A simple kind; a composed kind joins several by `+`. A simple kind contains neither `=` nor `+`, so no kind can
 * imitate another. `__proto__` is excluded: no key function has that kind, so a block of it would refuse nothing.
 */
const SIMPLE_KIND = /^(?!__proto__$)[A-Za-z0-9_.:~%-]+$/

export function isKind(kind: unknown): kind is string {
  if (typeof kind !== 'string' || kind.length > LONGEST_KIND) return false
  return kind.split('+').every((part) => SIMPLE_KIND.test(part))
}

/** The kind of a header's or cookie's values; names may hold characters that kinds may not. */
export function kindOfName(source: 'header' | 'cookie', name: string): string {
  return `${source}:${name.replace(/[^A-Za-z0-9_.~-]/g, escaped)}`
}

function escaped(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
}

/**
 * Whether values of a kind are secrets, so that only their hash is stored. A composed kind is secret if any part is.
 */
export function isSecretKind(kind: string): boolean {
  return /(^|\+)(credentials($|\+)|header:|cookie:)/.test(kind)
}

/** The hash of a secret as documents have it, for a value as keys count it, in base64url. */
export function writtenHash(counted: string): string {
  return `sha256:${Buffer.from(counted, 'base64url').toString('hex')}`
}

/** The hash of a secret as keys count it. Undefined for a text that documents may not have. */
export function countedHash(written: string): string | undefined {
  const hex = /^sha256:([0-9a-f]{64})$/.exec(written)?.[1]
  return hex === undefined ? undefined : Buffer.from(hex, 'hex').toString('base64url')
}

/** Whether an identity given by hand has its value as it is counted. */
export function isCounted(identity: unknown): identity is Identity {
  if (typeof identity !== 'object' || identity === null) return false
  return Object.hasOwn(identity, 'kind') && Object.hasOwn(identity, 'value')
}

/** The value of such an identity as one text. Undefined if it is none. */
export function countedValue({ value }: Identity): string | undefined {
  const text: unknown = Array.isArray(value) ? joined(value.map(String)) : value
  return typeof text === 'string' && text !== '' && text.length <= LONGEST_VALUE ? text : undefined
}

/** The start of an identity's text. Stores receive an identity as one text: this start, then the value. */
export function startOf(kind: string): string {
  return `${kind}=`
}

/** The index of the value in an identity's text; 0 if the text has no kind. */
export function valueStart(identity: string): number {
  const end = identity.indexOf('=')
  return end > 0 && isKind(identity.slice(0, end)) ? end + 1 : 0
}

/** The index of the value in a text that stores receive; 0 if it has no kind. */
export function afterKind(text: string): number {
  return text.indexOf('=') + 1
}

/** The identity that a text stands for. */
export function identityIn(text: string): Identity {
  const { kind, value } = textValue(text)
  return { kind, value: kind.includes('+') && !isHash(value) ? split(value) : value }
}

/** The kind of an identity, and its value as one text, even for a composed kind. */
export function textValue(text: string): { readonly kind: string; readonly value: string } {
  const end = text.indexOf('=')
  return { kind: text.slice(0, end), value: text.slice(end + 1) }
}

/** The values of a composed key as one text. Different values never give the same text. */
export function joined(values: readonly string[]): string {
  const lengths = values.map(({ length }) => length)
  // Only the hash of this text is stored, so nothing needs escaping. No value is empty, so no other text begins with
  // `|`.
  if (lengths.reduce((sum, length) => sum + length, 0) > LONGEST_VALUE) return `|${lengths.join()}|${values.join('')}`
  return values.map((value) => value.replace(/[\\|]/g, '\\$&')).join('|')
}

function split(text: string): string[] {
  const parts = text.match(/(?:\\.|[^\\|])+/gs) ?? []
  return parts.map((part) => part.replace(/\\(.)/gs, '$1'))
}

const HASH_START = '#'
const HASH_LENGTH = 23

/** Whether a text has the form of a `hashOf` result. */
export function isHash(text: string): boolean {
  return text.length === HASH_LENGTH && text.startsWith(HASH_START)
}
