import { invalidPolicy, show, wrongPolicy } from './errors.js'
import { refuseFactory } from './factories.js'
import { isRecord } from './is-record.js'
import { optionHint } from './option-hints.js'

/**
 * Rejects unknown options: a misspelt option silently ignored is a limit silently absent. The message says what to use
 * instead, for misspellings and for options of other libraries. `absent`: why there is no such option here, by its name.
 * `form`: options to write.
 */
export function knownOptions(
  where: string,
  options: unknown,
  known: readonly string[],
  absent: Readonly<Record<string, string>> = {},
  form?: string,
): void {
  refusePolluted(where, known)
  if (!isRecord(options)) {
    const example = form === undefined ? '' : `write ${form}; `
    invalidPolicy(where, 'options', 'an object', options, `${example}its fields are ${known.join(', ')}`)
  }
  for (const [field, value] of Object.entries(options)) {
    if (known.includes(field)) continue
    const shown = /^\w{1,40}$/.test(field) ? field : show(field)
    const hint = Object.hasOwn(absent, field) ? absent[field] : optionHint(field, known)
    const instead = hint === undefined ? ` (the options are ${known.join(', ')})` : `: ${hint}`
    wrongPolicy(`${where}: ${shown}: unknown option${instead}, got ${show(value)}`)
  }
}

/**
 * Rejects options while `Object.prototype` has a property of the name of one: every object has it then, and `skip` would turn off
 * each limit that names none.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function refusePolluted(where: string, known: readonly string[]): void {
  for (const name of known) {
    // Its value is not read: it may be a getter.
    if (!Object.hasOwn(Object.prototype, name)) continue
    const why = 'as every object of options would have it: find the package that adds it there'
    wrongPolicy(`${where}: ${name}: expected no property of this name on Object.prototype, ${why}`)
  }
}

/** A whole number from `min` up to `max`, or 2^53 - 1. */
export function wholeNumber(where: string, field: string, value: unknown, min: number, max?: number): number {
  if (!Number.isSafeInteger(value) || (value as number) < min) {
    invalidPolicy(where, field, `a whole number of at least ${min}`, value)
  }
  if (max !== undefined && (value as number) > max) invalidPolicy(where, field, `at most ${max}`, value)
  // Not -0, which would show up in keys and reports.
  return (value as number) + 0
}

/** Refuses a product that doubles cannot hold exactly: beyond 2^53 the arithmetic would round. */
export function exactProduct(where: string, field: string, units: number, windowMs: number): void {
  if (units * windowMs > Number.MAX_SAFE_INTEGER) {
    const got = `${units} * ${windowMs}: use a shorter window, or fixedWindow, which has no such bound`
    wrongPolicy(`${where}: ${field}: expected units times window in ms to stay below 2^53, got ${got}`)
  }
}

export function oneOf<T extends string>(where: string, field: string, value: unknown, choices: readonly T[]): T {
  if (!choices.includes(value as T)) {
    invalidPolicy(where, field, choices.map((choice) => JSON.stringify(choice)).join(' or '), value)
  }
  return value as T
}

/** `form`: what to write. */
export function optionalFunction(where: string, field: string, value: unknown, form?: string): void {
  if (value !== undefined && typeof value !== 'function') {
    invalidPolicy(where, field, 'a function', value, form && `write ${form}`)
  }
  refuseFactory(where, field, value)
}

/** Limit names reach headers, so they are refused here rather than escaped there. */
export function headerName(where: string, field: string, value: unknown): string {
  if (typeof value !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(value)) {
    invalidPolicy(where, field, '1 to 64 letters, digits, "_" or "-"', value)
  }
  return value
}
