import type { ConsoleFigures } from '../figures/parts.js'
import type { CheckedOptions, Operator } from '../options.js'
import type { ObjectSchema } from '../schema.js'
import type { ClientIds } from '../traffic/client-ids.js'
import type { Traffic } from '../traffic/traffic.js'

/** A request to a route, once it may use it. */
export interface Call<Body = never> {
  readonly console: CheckedOptions<never>
  /** Of the route's schema. */
  readonly body: Body
  readonly operator: Operator
  /** The address that the operator comes from. */
  readonly ip: string | undefined
  readonly figures: ConsoleFigures
  readonly traffic: Traffic
  readonly clientIds: ClientIds
  /** Asks `authorize` again. @throws Problem where it refuses */
  readonly ask: () => Promise<Operator>
}

/** A route: all that the adapters and the OpenAPI document know of it. */
export interface Route {
  readonly method: 'GET' | 'POST'
  /** Below the path of the console. */
  readonly path: string
  readonly id: string
  /** One sentence. */
  readonly summary: string
  /** `act`: it changes something. */
  readonly may: 'read' | 'act'
  /** Absent for GET. */
  readonly body?: ObjectSchema
  /** Its answer, in a few words. */
  readonly answer: string
  /** The type of its answer. @default JSON */
  readonly type?: string
  run(call: Call): Promise<unknown> | unknown
}

/** A route with the type of its body, which its schema has checked. */
export function route<Body = never>(
  parts: Omit<Route, 'run'> & { run(call: Call<Body>): Promise<unknown> | unknown },
): Route {
  return parts as Route
}

/** The schema of an object. */
export function object(properties: ObjectSchema['properties'], ...required: string[]): ObjectSchema {
  return { type: 'object', properties, required, additionalProperties: false }
}

export const POLICY = {
  type: 'string',
  minLength: 1,
  maxLength: 64,
  description: 'The name of a policy. Without it, every policy of the store.',
} as const

/** Fields of a page of entries. */
export const PAGE = {
  kind: { type: 'string', maxLength: 256, description: 'Entries of this kind of identity.' },
  prefix: { type: 'string', maxLength: 256, description: 'Entries whose value begins with this text.' },
  cursor: { type: 'string', maxLength: 256, description: 'The cursor of the page before.' },
  max: { type: 'integer', minimum: 1, maximum: 1000, description: 'Entries of a page; 100 without it.' },
} as const

export interface PageBody {
  readonly kind?: string
  readonly prefix?: string
  readonly cursor?: string
  readonly max?: number
}
