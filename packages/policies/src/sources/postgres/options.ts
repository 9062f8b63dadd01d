import { SluiceError } from '@sluice/core'
import { refusePolluted } from '@sluice/core/internal'

/** How policies are read from PostgreSQL. */
export interface PostgresOptions {
  /** A `Pool` of `pg`. One connection of its own is made with its settings; none is taken from the pool. */
  readonly pool: unknown
  /** The schema with the tables. @default 'public' */
  readonly schema?: string
  /** Whether to read the table `sluice_overrides`, too. @default true */
  readonly overrides?: boolean
  /**
   * Whether to be notified of changes. Without, and behind a pooler such as PgBouncer, where it is turned off by itself, PostgreSQL
   * is asked every `pollMs`. @default true
   */
  readonly listen?: boolean
  /** How often PostgreSQL is asked where it does not notify: whole milliseconds, 50 to 60,000. @default 500 */
  readonly pollMs?: number
  /**
   * How long a request waits for an override that is not known yet, at most: whole milliseconds, 1 to 10,000. Then what was known last
   * of the client decides, else the document. @default 50
   */
  readonly lookupTimeoutMs?: number
  /** Overrides that are held, of those used last: 1 to 1,000,000, of some 300 bytes each. @default 10_000 */
  readonly mostHeld?: number
}

export type CheckedPostgresOptions = Required<PostgresOptions>

const OPTIONS = ['pool', 'schema', 'overrides', 'listen', 'pollMs', 'lookupTimeoutMs', 'mostHeld']

/**
 * @param given a pool, or options with one
 * @throws SluiceError `INVALID_POLICY`
 */
export function postgresOptions(given: unknown): CheckedPostgresOptions {
  refusePolluted('policies.from: postgres', OPTIONS)
  const options = (isOptions(given) ? given : { pool: given }) as PostgresOptions
  for (const option of Object.keys(options)) {
    if (!OPTIONS.includes(option)) wrong(option, `none of this name (the options are ${OPTIONS.join(', ')})`)
  }
  const { pool, schema = 'public', overrides = true, listen = true } = options
  if (typeof schema !== 'string' || schema === '' || schema.length > 63 || schema.includes('\0')) {
    wrong('schema', 'the name of a schema, of 1 to 63 characters')
  }
  if (typeof overrides !== 'boolean') wrong('overrides', 'true or false')
  if (typeof listen !== 'boolean') wrong('listen', 'true or false')
  return {
    pool,
    schema,
    overrides,
    listen,
    pollMs: whole('pollMs', options.pollMs ?? 500, 50, 60_000),
    lookupTimeoutMs: whole('lookupTimeoutMs', options.lookupTimeoutMs ?? 50, 1, 10_000),
    mostHeld: whole('mostHeld', options.mostHeld ?? 10_000, 1, 1_000_000),
  }
}

/** A pool has neither a `pool` nor is it plain data. */
function isOptions(given: unknown): boolean {
  return typeof given === 'object' && given !== null && 'pool' in given
}

function whole(option: string, value: unknown, least: number, most: number): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return value as number
  return wrong(option, `a whole number from ${least} to ${most}`)
}

function wrong(option: string, expected: string): never {
  throw new SluiceError('INVALID_POLICY', `policies.from: postgres: ${option}: expected ${expected}`)
}
