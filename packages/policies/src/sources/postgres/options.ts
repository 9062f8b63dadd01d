import { type Duration, SluiceError } from '@sluice/core'
import { durationMs, knownOptions } from '@sluice/core/internal'

/** Options of reading policies from PostgreSQL. */
export interface PostgresOptions {
  /** A `Pool` of `pg`. One connection of its own is made with its settings; none is taken from the pool. */
  readonly pool: unknown
  /** The schema with the tables. @default 'public' */
  readonly schema?: string
  /** Whether to read the table `sluice_overrides`, too. @default true */
  readonly overrides?: boolean
  /**
   * Whether to be notified of changes.
   *
   * Otherwise each process polls PostgreSQL every `pollEvery`. Behind a pooler such as PgBouncer, notifications turn
   * off by themselves.
   * @default true
   */
  readonly listen?: boolean
  /** The interval of polls where PostgreSQL does not notify: 50 ms to 1 minute, in ms or as a duration. @default 500 */
  readonly pollEvery?: Duration
  /**
   * The longest wait of a request for an override that is not known yet: up to 10 seconds, in ms or as a duration.
   *
   * Then the last known override of the client decides, else the document.
   * @default 50
   */
  readonly lookupTimeout?: Duration
  /** Overrides that a process holds, of those used last: 1 to 1,000,000, of some 300 bytes each. @default 10_000 */
  readonly maxOverrides?: number
}

export interface CheckedPostgresOptions extends Required<Omit<PostgresOptions, 'pollEvery' | 'lookupTimeout'>> {
  readonly pollMs: number
  readonly lookupTimeoutMs: number
}

const WHERE = 'policies.from: postgres'
const OPTIONS = ['pool', 'schema', 'overrides', 'listen', 'pollEvery', 'lookupTimeout', 'maxOverrides']

/**
 * @param given a pool, or options with one
 * @throws SluiceError `INVALID_POLICY`
 */
export function postgresOptions(given: unknown): CheckedPostgresOptions {
  const options = (isOptions(given) ? given : { pool: given }) as PostgresOptions
  knownOptions(WHERE, options, OPTIONS)
  const { pool, schema = 'public', overrides = true, listen = true } = options
  const { pollEvery = 500, lookupTimeout = 50, maxOverrides = 10_000 } = options
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
    pollMs: within('pollEvery', pollEvery, 50, 60_000),
    lookupTimeoutMs: within('lookupTimeout', lookupTimeout, 1, 10_000),
    maxOverrides: whole('maxOverrides', maxOverrides, 1, 1_000_000),
  }
}

/** A pool has neither a `pool` nor is it plain data. */
function isOptions(given: unknown): boolean {
  return typeof given === 'object' && given !== null && 'pool' in given
}

function within(option: string, value: unknown, min: number, max: number): number {
  const ms = durationMs(WHERE, option, value)
  return ms >= min && ms <= max ? ms : wrong(option, `a duration from ${min} to ${max} ms`)
}

function whole(option: string, value: unknown, min: number, max: number): number {
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return value as number
  return wrong(option, `a whole number from ${min} to ${max}`)
}

function wrong(option: string, expected: string): never {
  throw new SluiceError('INVALID_POLICY', `${WHERE}: ${option}: expected ${expected}`)
}
