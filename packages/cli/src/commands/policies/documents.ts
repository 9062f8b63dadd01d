import { readFileSync } from 'node:fs'
import { RedisDocuments } from '@sluice/policies'
import type { OptionSpec, OptionValues } from '../../program/command.js'
import type { Environment } from '../../program/environment.js'
import { UsageError } from '../../program/usage-error.js'
import { Deadline } from '../../redis/deadline.js'
import { Server } from '../../redis/server.js'
import { targetOf } from '../../redis/target.js'

const TIMEOUT_MS = 20_000

/** Options of commands that change or show the document in Redis. */
export const DOCUMENT_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  name: { type: 'string', placeholder: 'NAME', text: 'which document it is', default: 'default' },
  prefix: { type: 'string', placeholder: 'TEXT', text: 'prefix of redisStore', default: 'sluice:' },
  'redis-file': {
    type: 'string',
    placeholder: 'FILE',
    text: 'a file that holds the URL of Redis; never an argument, which shows in process lists',
    default: 'REDIS_URL in the environment',
  },
  json: { type: 'boolean', text: 'print JSON' },
}

/**
 * Does something with the documents in the Redis that the environment, or a file, names.
 *
 * @throws UsageError, Unreachable
 */
export async function withDocuments<Result>(
  values: OptionValues,
  { env }: Environment,
  then: (documents: RedisDocuments) => Promise<Result>,
): Promise<Result> {
  const { name = 'default', prefix = 'sluice:', 'redis-file': file } = values
  const [source, url] = typeof file === 'string' ? ['--redis-file', textOf(file)] : ['REDIS_URL', env.REDIS_URL]
  if (!url) throw new UsageError('no Redis is named: set REDIS_URL, or pass --redis-file')
  const server = await Server.connect(targetOf(source as string, url, {}), new Deadline(TIMEOUT_MS))
  try {
    return await then(
      new RedisDocuments((command, ...args) => server.call(command, ...args), String(name), String(prefix)),
    )
  } finally {
    server.close()
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new UsageError(`--redis-file: cannot read ${JSON.stringify(file)} (${(error as NodeJS.ErrnoException).code})`)
  }
}
