/** What a limit counts: a value, and the kind of thing it is a value of. Equal values of two kinds are two identities. */
export interface Identity {
  /** Such as `ip`, `user`, `header:x-api-key`, or `ip+route` of a composed key. */
  readonly kind: string
  /**
   * As it is counted: normalised, and hashed where it is secret or long. Of a composed kind one value per part,
   * unless they are so long together that only their hash is kept.
   */
  readonly value: string | readonly string[]
}

/** A value by itself. */
export type KeyValue = string | number | bigint

/**
 * An identity given by hand: an object of exactly one kind and its raw value, such as `{ account: 'ann' }`; of a
 * composed kind an array of values, such as `{ 'ip+route': ['192.0.2.7', '/login'] }`.
 */
export type IdentityByKind = Readonly<Record<string, KeyValue | readonly KeyValue[]>>

/** Most characters of a kind, and of a value: a longer value is replaced by its hash. */
export const LONGEST_KIND = 256
export const LONGEST_VALUE = 256

/**
 * A kind by itself; a composed one is several, joined by `+`. Neither `=` nor `+` can be in one, so nothing forges another. No key
 * function has the kind `__proto__`, so that a block of it would refuse nobody.
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

/** Whether values of a kind are secrets, of which only the hash is kept, by what they are of; of a composed kind any part. */
export function isSecretKind(kind: string): boolean {
  return /(^|\+)(credentials($|\+)|header:|cookie:)/.test(kind)
}

/** An identity as stores get it is one text: this, and the value. */
export function startOf(kind: string): string {
  return `${kind}=`
}

/** Where the value starts in an identity's text; 0 where the text has no kind. */
export function valueStart(identity: string): number {
  const end = identity.indexOf('=')
  return end > 0 && isKind(identity.slice(0, end)) ? end + 1 : 0
}

/** Where the value starts in a text that stores get; 0 where it has no kind. */
export function afterKind(text: string): number {
  return text.indexOf('=') + 1
}

/** The identity that a text stands for. */
export function identityIn(text: string): Identity {
  const { kind, value } = textValue(text)
  return { kind, value: kind.includes('+') && !isHash(value) ? split(value) : value }
}

/** The kind of an identity, and its value as one text, also of a composed kind. */
export function textValue(text: string): { readonly kind: string; readonly value: string } {
  const end = text.indexOf('=')
  return { kind: text.slice(0, end), value: text.slice(end + 1) }
}

/** The values of a composed key as one: different ones never as the same. */
export function joined(values: readonly string[]): string {
  const lengths = values.map(({ length }) => length)
  // Only its hash is kept: nothing has to be escaped. No value is empty, so that nothing else begins with `|`.
  if (lengths.reduce((sum, length) => sum + length, 0) > LONGEST_VALUE) return `|${lengths.join()}|${values.join('')}`
  return values.map((value) => value.replace(/[\\|]/g, '\\$&')).join('|')
}

function split(text: string): string[] {
  const parts = text.match(/(?:\\.|[^\\|])+/gs) ?? []
  return parts.map((part) => part.replace(/\\(.)/gs, '$1'))
}

const HASH_START = '#'
const HASH_LENGTH = 23

/** Whether a text reads like one of `hashOf`. */
export function isHash(text: string): boolean {
  return text.length === HASH_LENGTH && text.startsWith(HASH_START)
}
