import { beginAtCaller } from './caller.js'
import { escapeControls } from './escape.js'

/** The kind of an error, for programs: messages may change, codes do not. */
export type SluiceErrorCode =
  | 'INVALID_POLICY'
  | 'INVALID_COST'
  | 'INVALID_KEY'
  | 'INVALID_LIST'
  | 'STORE_UNAVAILABLE'
  | 'STORE_FULL'
  | 'WAIT_EXCEEDED'
  | 'CIRCUIT_OPEN'
  | 'TWO_COPIES'

/** Something is broken or misused. A refusal is never an error: it is a verdict. */
export class SluiceError extends Error {
  readonly code: SluiceErrorCode

  constructor(code: SluiceErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'SluiceError'
    this.code = code
    // Subclasses are for requests, of which a client may send many.
    if (Object.getPrototypeOf(new.target) === Error && code.startsWith('INVALID_')) beginAtCaller(this)
  }
}

/**
 * A short, safe rendering of any value for an error message. A promise that came in place of a value is awaited by no
 * caller: the error reports it, so its rejection is ignored and does not end the process.
 */
export function show(value: unknown): string {
  if (typeof value === 'string') return quoted(value)
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'object' && value !== null) return kindOf(value)
  return escapeControls(cut(String(value)))
}

const MAX_SHOWN = 60

function cut(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}

function quoted(text: string): string {
  let shown = text.slice(0, MAX_SHOWN)
  // Some characters are six when they are escaped.
  while (inQuotes(shown).length > 2 * MAX_SHOWN) shown = shown.slice(0, -1)
  return inQuotes(shown === text ? text : `${shown}…`)
}

function inQuotes(text: string): string {
  return escapeControls(JSON.stringify(text))
}

function kindOf(value: object): string {
  try {
    if (value instanceof Map) return 'a Map'
    if (!(value instanceof Promise)) return Array.isArray(value) ? 'an array' : 'an object'
    value.catch(() => {})
    return 'a promise'
  } catch {
    // A proxy that throws when it is inspected must not become the error.
    return 'an object'
  }
}

/** Fails with the house form `where: field: expected …, got …`; `remedy` says what to do, where that is not plain. */
export function invalidPolicy(where: string, field: string, expected: string, got: unknown, remedy?: string): never {
  const hint = remedy === undefined ? '' : `: ${remedy}`
  wrongPolicy(`${where}: ${field}: expected ${expected}, got ${show(got)}${hint}`)
}

/** Fails with a message of another form. */
export function wrongPolicy(message: string): never {
  throw new SluiceError('INVALID_POLICY', message)
}

/** Fails where an option excludes another one. */
export function neverBeside(where: string, field: string, other: string, got: unknown): never {
  invalidPolicy(where, field, `none beside ${other}`, got, `leave out ${field}, or ${other}`)
}

/** Fails where an option needs another one. */
export function neverWithout(where: string, field: string, other: string, got: unknown): never {
  invalidPolicy(where, field, `none without ${other}`, got, `add ${other}, or leave out ${field}`)
}

/** Fails where an identity that is given by hand cannot be counted: `field: expected …, got …`. */
export function invalidKey(field: string, expected: string, got: unknown): never {
  throw new SluiceError('INVALID_KEY', `${field}: expected ${expected}, got ${show(got)}`)
}
