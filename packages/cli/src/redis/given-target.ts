import { readFileSync } from 'node:fs'
import type { OptionSpec, OptionValues } from '../program/command.js'
import type { Environment } from '../program/environment.js'
import { UsageError } from '../program/usage-error.js'
import { type Target, targetOf } from './target.js'

/** Options of commands that use what is in Redis. */
export const REDIS_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  prefix: { type: 'string', placeholder: 'TEXT', text: 'prefix of redisStore', default: 'sluice:' },
  'redis-file': {
    type: 'string',
    placeholder: 'FILE',
    text: 'a file with the URL of Redis, as arguments show in process lists',
    default: 'REDIS_URL',
  },
  json: { type: 'boolean', text: 'print JSON' },
}

/**
 * The Redis that the environment, or a file, names.
 *
 * @throws UsageError where none does
 */
export function givenTarget({ 'redis-file': file }: OptionValues, { env }: Environment): Target {
  const [source, url] = typeof file === 'string' ? ['--redis-file', textOf(file)] : ['REDIS_URL', env.REDIS_URL]
  if (!url) throw new UsageError('no Redis is named: set REDIS_URL, or pass --redis-file')
  return targetOf(source as string, url, {})
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new UsageError(`--redis-file: cannot read ${JSON.stringify(file)} (${(error as NodeJS.ErrnoException).code})`)
  }
}
