import { RedisDocuments } from '@sluice/policies'
import type { OptionSpec, OptionValues } from '../../program/command.js'
import type { Environment } from '../../program/environment.js'
import { Deadline } from '../../redis/deadline.js'
import { givenTarget, REDIS_OPTIONS } from '../../redis/given-target.js'
import { Server } from '../../redis/server.js'

const TIMEOUT_MS = 20_000

/** Options of commands that change or show the document in Redis. */
export const DOCUMENT_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  name: { type: 'string', placeholder: 'NAME', text: 'which document it is', default: 'default' },
  ...REDIS_OPTIONS,
}

/**
 * Does something with the documents in the Redis that the environment, or a file, names.
 *
 * @throws UsageError, Unreachable
 */
export async function withDocuments<Result>(
  values: OptionValues,
  environment: Environment,
  then: (documents: RedisDocuments) => Promise<Result>,
): Promise<Result> {
  const { name = 'default', prefix = 'sluice:' } = values
  const server = await Server.connect(givenTarget(values, environment), new Deadline(TIMEOUT_MS))
  try {
    return await then(
      new RedisDocuments((command, ...args) => server.call(command, ...args), String(name), String(prefix)),
    )
  } finally {
    server.close()
  }
}
