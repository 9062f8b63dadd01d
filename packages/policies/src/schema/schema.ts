import json from './policies.schema.json' with { type: 'json' }

/** The parts of JSON Schema that the schema of documents uses. */
export interface Schema {
  readonly $ref?: string
  /** The expectation, in messages. */
  readonly title?: string
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly oneOf?: readonly Schema[]
  /** Selects one of `oneOf` by the `const` of this field; `default` where it is absent. */
  readonly discriminator?: { readonly propertyName: string; readonly default: string }
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly propertyNames?: Schema
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly items?: Schema
  readonly minItems?: number
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  /** Never shown in messages: it may be a secret. */
  readonly writeOnly?: boolean
}

export const SCHEMA = json as unknown as Schema & { readonly $defs: Readonly<Record<string, Schema>> }
