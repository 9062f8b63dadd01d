import { readFileSync } from 'node:fs'
import type { Query } from '@sluice/policies'
import type { OptionSpec, OptionValues } from '../program/command.js'
import type { Environment } from '../program/environment.js'
import { UsageError } from '../program/usage-error.js'

/** For each query and for the connection. */
const TIMEOUT_MS = 20_000

/** Options of commands that use what is in PostgreSQL. */
export const POSTGRES_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  'postgres-file': {
    type: 'string',
    placeholder: 'FILE',
    text: 'a file with the URL of PostgreSQL; arguments are in process lists',
    default: 'DATABASE_URL',
  },
  schema: { type: 'string', placeholder: 'NAME', text: 'the schema of the tables in PostgreSQL', default: 'public' },
}

/**
 * Does something on a connection to the PostgreSQL that the environment, or a file, names.
 *
 * @throws UsageError, PostgresFailure
 */
export async function withPostgres<Result>(
  values: OptionValues,
  environment: Environment,
  then: (query: Query) => Promise<Result>,
): Promise<Result> {
  const connectionString = givenUrl(values, environment)
  // Most commands need none of it.
  const { Client } = await import('pg')
  let client: InstanceType<typeof Client>
  try {
    client = new Client({
      connectionString,
      connectionTimeoutMillis: TIMEOUT_MS,
      query_timeout: TIMEOUT_MS,
      application_name: 'sluice',
    })
  } catch {
    // The error may repeat the text.
    throw new UsageError(`${sourceOf(values)}: ${EXPECTED}`)
  }
  // Without a listener the error would end the process. The query under way reports it.
  client.on('error', () => {})
  const query: Query = (text, given) => client.query(text, given && [...given])
  let isConnected = false
  try {
    return await then(async (text, given) => {
      if (!isConnected) await client.connect()
      isConnected = true
      return query(text, given)
    })
  } finally {
    await client.end().catch(() => {})
  }
}

const EXPECTED = 'expected a URL such as postgres://user:password@host:5432/database'

function sourceOf(values: OptionValues): string {
  return values['postgres-file'] === undefined ? 'DATABASE_URL' : '--postgres-file'
}

/**
 * The URL of the PostgreSQL that the environment, or a file, names.
 *
 * @throws UsageError where none does, which never repeats it: it may hold a password
 */
export function givenUrl(values: OptionValues, { env }: Environment): string {
  const file = values['postgres-file']
  const url = typeof file === 'string' ? textOf(file) : env.DATABASE_URL
  if (!url) throw new UsageError('no PostgreSQL is named: set DATABASE_URL, or pass --postgres-file')
  if (!/^postgres(?:ql)?:\/\//.test(url)) throw new UsageError(`${sourceOf(values)}: ${EXPECTED}`)
  return url
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageError(`--postgres-file: cannot read ${JSON.stringify(file)} (${code})`)
  }
}

/** A pool for users with a connection of their own, such as policies: it opens none by itself. @throws UsageError */
export async function poolFor(connectionString: string): Promise<unknown> {
  const { Client, Pool } = await import('pg')
  try {
    new Client({ connectionString })
  } catch {
    // The error may repeat the text.
    throw new UsageError(`the URL of PostgreSQL: ${EXPECTED}`)
  }
  return new Pool({ connectionString, application_name: 'sluice' })
}

/** The schema of `--schema`. */
export function schemaOf({ schema = 'public' }: OptionValues): string {
  if (typeof schema === 'string' && schema.length <= 63) return schema
  throw new UsageError('--schema: expected a name of at most 63 characters')
}
