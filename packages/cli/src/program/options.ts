import { parseArgs } from 'node:util'
import { hintAfter, ownFieldsOf, quoted } from '@sluice/core/internal'
import type { OperandSpec, OptionSpec, OptionValues } from './command.js'
import { UsageError } from './usage-error.js'

/**
 * Reads options. A misspelt option silently ignored would be a check silently absent, so whatever is not known is rejected,
 * with the nearest known one.
 *
 * @throws UsageError
 */
export function readOptions(
  args: readonly string[],
  specs: Readonly<Record<string, OptionSpec>>,
  takes: OperandSpec = { placeholder: '', min: 0, max: 0 },
): { readonly values: OptionValues; readonly operands: readonly string[] } {
  const options = Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => {
      const { type, short } = ownFieldsOf(spec)
      return [name, { type, ...(short && { short }) }]
    }),
  )
  // Not strict: its own errors know no suggestions.
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true })
  // An option that is not given is none of `Object.prototype`.
  const values: Record<string, string | true> = Object.create(null)
  const operands: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') {
      if (operands.length >= takes.max) throw new UsageError(`unexpected argument ${quoted(token.value)}`)
      operands.push(token.value)
    }
    if (token.kind !== 'option') continue
    const spec = Object.hasOwn(specs, token.name) ? specs[token.name] : undefined
    if (!spec) throw new UsageError(unknownOption(token.rawName, Object.keys(specs)))
    const value = checkedValue(token.rawName, token.value, spec)
    const before = values[token.name]
    values[token.name] = ownFieldsOf(spec).repeats && before !== undefined ? `${before}\n${value}` : value
  }
  if (operands.length < takes.min && !values.help) throw new UsageError(`expected ${takes.placeholder}`)
  return { values, operands }
}

function checkedValue(name: string, value: string | undefined, { type, placeholder }: OptionSpec): string | true {
  if (type === 'boolean') {
    if (value !== undefined) throw new UsageError(`${name} takes no value`)
    return true
  }
  // `--url --json`: the value was forgotten.
  if (value === undefined || value === '' || value.startsWith('--')) {
    throw new UsageError(`${name} needs a value: ${name} ${placeholder ?? 'VALUE'}`)
  }
  return value
}

function unknownOption(name: string, known: readonly string[]): string {
  return `unknown option ${quoted(name)}${hintAfter(name.replace(/^-+/, ''), known, '--')}`
}

/**
 * A whole number of an option.
 *
 * @throws UsageError
 */
export function wholeNumberOption(
  values: OptionValues,
  name: string,
  { min, max, otherwise }: { min: number; max: number; otherwise: number },
): number {
  const text = values[name]
  if (text === undefined) return otherwise
  const number = Number(text)
  if (/^\d+$/.test(String(text)) && number >= min && number <= max) return number
  throw new UsageError(`--${name}: expected a whole number from ${min} to ${max}, got ${quoted(String(text))}`)
}

/**
 * A share of an option, such as `0.1%`, as a number from 0 to 1. Undefined where it is not given.
 *
 * @throws UsageError
 */
export function shareOption(values: OptionValues, name: string): number | undefined {
  const text = values[name]
  if (text === undefined) return undefined
  const [, number] = /^(\d+(?:\.\d+)?)%$/.exec(String(text)) ?? []
  if (number !== undefined && Number(number) <= 100) return Number(number) / 100
  throw new UsageError(`--${name}: expected a share from 0% to 100%, got ${quoted(String(text))}`)
}

const UNITS_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * A duration of an option, in ms.
 *
 * @throws UsageError
 */
export function durationOption(
  values: OptionValues,
  name: string,
  { minMs, maxMs, otherwiseMs }: { minMs: number; maxMs: number; otherwiseMs: number },
): number {
  const text = values[name]
  if (text === undefined) return otherwiseMs
  const [, digits, unit] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(String(text)) ?? []
  const ms = Number(digits) * UNITS_MS[(unit ?? 'ms') as keyof typeof UNITS_MS]
  if (ms >= minMs && ms <= maxMs) return ms
  throw new UsageError(
    `--${name}: expected a duration from ${minMs}ms to ${maxMs / 1000}s, such as 500ms or 10s, got ${quoted(String(text))}`,
  )
}
