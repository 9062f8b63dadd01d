import { getOrInsert, hintFor } from '@sluice/core/internal'
import type { Path, Problem } from '../problems/problem.js'
import { MAX_PROBLEMS, shown } from '../problems/problem.js'
import { SCHEMA, type Schema } from './schema.js'

/**
 * The problems of a value by the schema, each with its path. It validates the keywords that the schema uses. Unlike a full
 * validator of JSON Schema, it reports the problems of the variant of a union that was meant, and says in words what was
 * expected.
 */
export function checkSchema(value: unknown): Problem[] {
  const problems: Problem[] = []
  check(SCHEMA, value, [], problems)
  return problems
}

/** The same for a limit alone. */
export function checkLimit(limit: unknown, path: Path, problems: Problem[]): void {
  check(SCHEMA.$defs.limit as Schema, limit, path, problems)
}

/** The same for the changes of an override. */
export function checkChanges(limits: unknown, path: Path, problems: Problem[]): void {
  check(SCHEMA.$defs.override?.properties?.limits as Schema, limits, path, problems)
}

/** The fields that limits of an algorithm may have. */
export function fieldsOfLimit(algorithm: string): readonly string[] {
  return Object.keys(SCHEMA.$defs[algorithm]?.properties ?? {})
}

/** Every field that some part of a document may have. */
export const FIELDS_OF_DOCUMENTS: readonly string[] = [
  ...new Set([SCHEMA, ...Object.values(SCHEMA.$defs)].flatMap(fieldsWithin)),
]

function fieldsWithin({ properties = {}, items }: Schema): string[] {
  return [
    ...Object.entries(properties).flatMap(([field, schema]) => [field, ...fieldsWithin(schema)]),
    ...(items ? fieldsWithin(items) : []),
  ]
}

function check(given: Schema, value: unknown, path: Path, problems: Problem[]): void {
  if (problems.length >= MAX_PROBLEMS) return
  const schema = resolved(given)
  const fail = (expected: string) => problems.push({ path, message: `expected ${expected}${gotOf(schema, value)}` })
  if (schema.oneOf) return checkVariant(schema, value, path, problems)
  if (schema.const !== undefined && value !== schema.const) {
    fail(schema.title ?? shown(schema.const))
    return
  }
  if (schema.enum && !schema.enum.includes(value)) {
    fail(schema.enum.map(shown).join(' or '))
    return
  }
  const type = typeOf(value)
  if (schema.type && !typesOf(schema).some((each) => each === type || (each === 'number' && type === 'integer'))) {
    fail(schema.title ?? typesOf(schema).map(nameOfType).join(' or '))
    return
  }
  if (type === 'object') checkFields(schema, value as Fields, path, problems)
  else if (type === 'array') checkItems(schema, value as readonly unknown[], path, problems)
  else if (
    typeof value === 'string' ? !isText(schema, value) : typeof value === 'number' && !isInRange(schema, value)
  ) {
    problems.push({
      path,
      message: `expected ${schema.title ?? 'a value of this form'}${gotOf(schema, value)}${calendarHint(schema, value)}`,
    })
  }
}

/** Checks by the variant that the value names, or by the default where it names none. */
function checkVariant(schema: Schema, value: unknown, path: Path, problems: Problem[]): void {
  const { propertyName, default: byDefault } = schema.discriminator as NonNullable<Schema['discriminator']>
  if (typeOf(value) !== 'object') {
    problems.push({ path, message: `expected ${schema.title}${gotOf(schema, value)}` })
    return
  }
  const name = (value as Fields)[propertyName] ?? byDefault
  const variants = (schema.oneOf as readonly Schema[]).map(resolved)
  const names = variants.map(({ properties }) => properties?.[propertyName]?.const)
  const variant = variants[names.indexOf(name)]
  if (variant) return check(variant, value, path, problems)
  const hint = typeof name === 'string' ? afterSemicolon(hintFor(name, names as string[])) : ''
  const message = `expected ${names.map(shown).join(' or ')}, got ${shown(name)}${hint}`
  problems.push({ path: [...path, propertyName], message })
}

function afterSemicolon(hint: string | undefined): string {
  return hint === undefined ? '' : `; ${hint}`
}

type Fields = Readonly<Record<string, unknown>>

function checkFields(schema: Schema, fields: Fields, path: Path, problems: Problem[]): void {
  const { properties = {}, required = [], additionalProperties = true, propertyNames } = schema
  const count = Object.keys(fields).length
  if (count < (schema.minProperties ?? 0) || count > (schema.maxProperties ?? count)) {
    problems.push({ path, message: `expected ${schema.title}, got ${count} fields` })
    return
  }
  for (const field of required) {
    if (Object.hasOwn(fields, field)) continue
    const expected = resolved(properties[field] as Schema).title
    problems.push({ path, message: `${field} is missing${expected ? `: expected ${expected}` : ''}` })
  }
  for (const [field, value] of Object.entries(fields)) {
    // More are not reported, and each would be compared with all known ones.
    if (problems.length >= MAX_PROBLEMS) return
    const at = [...path, field]
    if (Object.hasOwn(properties, field)) {
      check(properties[field] as Schema, value, at, problems)
      continue
    }
    if (additionalProperties === false) {
      const known = Object.keys(properties)
      const hint = afterSemicolon(hintFor(field, known))
      problems.push({ path: at, message: `unknown field${hint} (expected ${known.join(', ')})`, isField: true })
      continue
    }
    if (propertyNames && !isText(resolved(propertyNames), field)) {
      const expected = resolved(propertyNames).title
      problems.push({ path: at, message: `wrong name: expected ${expected}`, isField: true })
    } else if (typeof additionalProperties === 'object') check(additionalProperties, value, at, problems)
  }
}

function checkItems(schema: Schema, items: readonly unknown[], path: Path, problems: Problem[]): void {
  const { minItems = 0, maxItems = items.length, items: each } = schema
  if (items.length < minItems || items.length > maxItems) {
    problems.push({
      path,
      message: `expected ${schema.title ?? `${minItems} to ${maxItems} items`}, got ${items.length}`,
    })
    return
  }
  if (each) for (const [i, item] of items.entries()) check(each, item, [...path, i], problems)
}

/** A window of the calendar is a text that is no duration. */
function calendarHint(schema: Schema, value: unknown): string {
  const { duration, window } = SCHEMA.$defs
  const isWindow = schema === duration && typeof value === 'string' && isText(window as Schema, value)
  return isWindow ? '; a window of the calendar needs algorithm: fixedWindow' : ''
}

/** Patterns are the schema's own, and none of them backtracks. */
function isText(schema: Schema, text: string): boolean {
  const { minLength = 0, maxLength = text.length, pattern } = schema
  return (
    text.length >= minLength && text.length <= maxLength && (pattern === undefined || patternOf(pattern).test(text))
  )
}

const patterns = new Map<string, RegExp>()

function patternOf(source: string): RegExp {
  return getOrInsert(patterns, source, () => new RegExp(source, 'u'))
}

function isInRange({ minimum, maximum, exclusiveMinimum }: Schema, number: number): boolean {
  return (
    number >= (minimum ?? Number.NEGATIVE_INFINITY) &&
    number <= (maximum ?? Number.POSITIVE_INFINITY) &&
    number > (exclusiveMinimum ?? Number.NEGATIVE_INFINITY)
  )
}

function resolved(schema: Schema): Schema {
  if (schema.$ref === undefined) return schema
  const target = SCHEMA.$defs[schema.$ref.slice('#/$defs/'.length)] as Schema
  return schema.writeOnly ? { ...target, writeOnly: true } : target
}

function typesOf({ type }: Schema): readonly string[] {
  return typeof type === 'string' ? [type] : (type ?? [])
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}

function nameOfType(type: string): string {
  return type === 'boolean'
    ? 'true or false'
    : `${/^[aio]/.test(type) ? 'an' : 'a'} ${type === 'string' ? 'text' : type}`
}

function gotOf({ writeOnly }: Schema, value: unknown): string {
  return writeOnly ? '' : `, got ${shown(value)}`
}
