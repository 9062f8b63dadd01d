// Release: packages as users have them. Runs alone: it loads the package again.
import { createRequire } from 'node:module'
import { basename } from 'node:path'
import { Redis } from 'ioredis'
import { beforeAll, expect, test } from 'vitest'
import { ensureBuilt } from '../support/built-core.js'

const require = createRequire(import.meta.url)
const folder = new URL('../../packages/core/dist/', import.meta.url).pathname
type Core = typeof import('@sluice/core')

beforeAll(() => ensureBuilt('core'))

const loaded = () => Object.keys(require.cache).filter((file) => file.startsWith(folder))
/** The core as a process loads it first, or after its modules were forgotten, as Jest does. */
function load(): Core {
  for (const file of loaded()) delete require.cache[file]
  return require(`${folder}index.cjs`)
}

test('a process loads what is for Redis with its first Redis store, and not before', async () => {
  const { createLimiter, redisStore } = load()
  await createLimiter({ limit: 1, window: '1m' }).consume('ann')
  const before = loaded().map((file) => basename(file))
  expect(before).toContain('program.cjs')
  expect(before).not.toContain('redis.cjs')

  const client = new Redis({ lazyConnect: true })
  await redisStore(client).close()
  client.disconnect()
  expect(loaded().map((file) => basename(file))).toContain('redis.cjs')
})

test('a Redis store has the classes of the program that it came with, also if modules were loaded again before', () => {
  const first = load()
  const second = load()
  expect(second.SluiceError).not.toBe(first.SluiceError)
  const thrownBy = ({ redisStore }: Core): unknown => {
    try {
      return redisStore({} as never)
    } catch (error) {
      return error
    }
  }
  expect(thrownBy(first)).toBeInstanceOf(first.SluiceError)
  expect(thrownBy(second)).toBeInstanceOf(second.SluiceError)
})
