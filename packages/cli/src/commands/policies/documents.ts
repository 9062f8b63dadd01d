import { PostgresDocuments, RedisDocuments, type SavedDocuments } from '@sluice/policies'
import { POSTGRES_OPTIONS, schemaOf, withPostgres } from '../../postgres/client.js'
import type { OptionSpec, OptionValues } from '../../program/command.js'
import type { Environment } from '../../program/environment.js'
import { UsageError } from '../../program/usage-error.js'
import { Deadline } from '../../redis/deadline.js'
import { givenTarget, REDIS_OPTIONS } from '../../redis/given-target.js'
import { Server } from '../../redis/server.js'

const TIMEOUT_MS = 20_000

/** Options of commands that change or show the document in Redis or PostgreSQL. */
export const DOCUMENT_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  to: { type: 'string', placeholder: 'WHERE', text: 'where the document is: redis or postgres', default: 'redis' },
  name: { type: 'string', placeholder: 'NAME', text: 'which document it is', default: 'default' },
  ...REDIS_OPTIONS,
  ...POSTGRES_OPTIONS,
}

/** Options that do not concern the other place. */
const OPTIONS_OF = { redis: ['prefix', 'redis-file'], postgres: Object.keys(POSTGRES_OPTIONS) }

/**
 * Does something with the documents in the Redis or PostgreSQL that the environment, or a file, names.
 *
 * @throws UsageError, Unreachable, PostgresFailure
 */
export async function withDocuments<Result>(
  values: OptionValues,
  environment: Environment,
  then: (documents: SavedDocuments) => Promise<Result>,
): Promise<Result> {
  const { name = 'default', prefix = 'sluice:', to = 'redis' } = values
  if (to !== 'redis' && to !== 'postgres') throw new UsageError('--to: expected redis or postgres')
  const other = OPTIONS_OF[to === 'redis' ? 'postgres' : 'redis'].find((option) => values[option] !== undefined)
  if (other) throw new UsageError(`--${other}: expected none with --to ${to}`)
  if (to === 'postgres') {
    const schema = schemaOf(values)
    return withPostgres(values, environment, (query) => then(new PostgresDocuments(query, String(name), schema)))
  }
  const server = await Server.connect(givenTarget(values, environment), new Deadline(TIMEOUT_MS))
  try {
    return await then(
      new RedisDocuments((command, ...args) => server.call(command, ...args), String(name), String(prefix)),
    )
  } finally {
    server.close()
  }
}
