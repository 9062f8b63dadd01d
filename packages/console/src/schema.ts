import { ownFieldsOf } from '@sluice/core/internal'
import { Problem } from './problem.js'

/** The part of JSON Schema that bodies of requests need. The OpenAPI document shows it as it is. */
export type Schema =
  | TextSchema
  | NumberSchema
  | BooleanSchema
  | ObjectSchema
  | AnyObjectSchema
  | ArraySchema
  | EitherSchema

interface Described {
  readonly description?: string
}

export interface TextSchema extends Described {
  readonly type: 'string'
  readonly minLength?: number
  readonly maxLength?: number
  readonly enum?: readonly string[]
}

interface NumberSchema extends Described {
  readonly type: 'integer'
  readonly minimum: number
  readonly maximum: number
}

interface BooleanSchema extends Described {
  readonly type: 'boolean'
}

interface ArraySchema extends Described {
  readonly type: 'array'
  readonly items: Schema
  readonly maxItems: number
}

interface EitherSchema extends Described {
  readonly oneOf: readonly Schema[]
}

export interface ObjectSchema extends Described {
  readonly type: 'object'
  readonly properties: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties: false
}

/** Checked by the code that takes it. */
interface AnyObjectSchema extends Described {
  readonly type: 'object'
  readonly properties?: undefined
}

/**
 * A body that fits a schema. Its objects have fields of their own alone: those that it leaves out are not those of `Object.prototype`.
 *
 * @throws Problem which names the field
 */
export function checkedBody(value: unknown, given: Schema, field = ''): unknown {
  const schema = ownFieldsOf(given)
  if ('oneOf' in schema) {
    const [first, ...others] = schema.oneOf as [Schema, ...Schema[]]
    return checkedBody(value, others.find((other) => fits(value, other)) ?? first, field)
  }
  if (schema.type === 'object') return checkedObject(value, schema, field)
  if (schema.type === 'array') {
    if (!Array.isArray(value) || value.length > schema.maxItems) wrong(field, `an array of at most ${schema.maxItems}`)
    return value.map((each, i) => checkedBody(each, schema.items, `${field}[${i}]`))
  }
  if (!fitsScalar(value, schema)) wrong(field, expectedOf(schema))
  return value
}

function checkedObject(value: unknown, schema: ObjectSchema | AnyObjectSchema, field: string): object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) wrong(field, 'an object')
  if (!schema.properties) return value
  const { properties, required = [] } = schema
  const inField = (name: string) => (field === '' ? name : `${field}.${name}`)
  for (const name of required) if (!Object.hasOwn(value, name)) wrong(inField(name), 'a value: it is missing')
  const fields = ownFieldsOf(value as Record<string, unknown>)
  for (const [name, each] of Object.entries(fields)) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined
    // Not the name that came: it is text of a stranger.
    if (!schema) wrong(field, `no other fields than ${Object.keys(properties).join(', ')}`)
    fields[name] = checkedBody(each, schema, inField(name))
  }
  return fields
}

function fitsScalar(value: unknown, schema: TextSchema | NumberSchema | BooleanSchema): boolean {
  if (schema.type === 'boolean') return typeof value === 'boolean'
  if (schema.type === 'integer') {
    return Number.isSafeInteger(value) && (value as number) >= schema.minimum && (value as number) <= schema.maximum
  }
  const { minLength = 0, maxLength = LONGEST } = schema
  if (typeof value !== 'string' || value.length < minLength || value.length > maxLength) return false
  return schema.enum?.includes(value) ?? true
}

/** Characters of texts without a bound of their own. */
const LONGEST = 1024

function expectedOf(schema: TextSchema | NumberSchema | BooleanSchema): string {
  if (schema.type === 'boolean') return 'true or false'
  if (schema.type === 'integer') return `a whole number from ${schema.minimum} to ${schema.maximum}`
  if (schema.enum) return schema.enum.join(' or ')
  return `a text of ${schema.minLength ?? 0} to ${schema.maxLength ?? LONGEST} characters`
}

function fits(value: unknown, schema: Schema): boolean {
  try {
    checkedBody(value, schema)
    return true
  } catch {
    return false
  }
}

function wrong(field: string, expected: string): never {
  throw new Problem(400, `${field === '' ? 'the body' : field}: expected ${expected}`)
}
