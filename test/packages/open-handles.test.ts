// Release: packages as users have them.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensureBuilt } from '../support/built-core.js'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'

const require = createRequire(import.meta.url)
const core = fileURLToPath(new URL('../../packages/core/dist/index.cjs', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'sluice-jest-'))
let server: RedisServer
beforeAll(async () => {
  ensureBuilt('core')
  ;({ server } = await redisForTests())
})
afterAll(() => rmSync(folder, { recursive: true }))

test('Jest finds no open handles of Sluice once stores and clients are closed', async () => {
  writeFileSync(join(folder, 'package.json'), '{}')
  writeFileSync(
    join(folder, 'limits.test.js'),
    `const { createLimiter, redisStore } = require(${JSON.stringify(core)})
    const { Redis } = require(${JSON.stringify(require.resolve('ioredis'))})
    const client = new Redis(${server.port})
    const store = redisStore(client)
    afterAll(async () => {
      await store.close()
      client.disconnect()
    })
    const limit = { limit: 1, window: '1m' }
    test.each([createLimiter(limit), createLimiter({ ...limit, name: 'jest', store })])('limits', async (limiter) => {
      expect((await limiter.consume('ann')).allowed).toBe(true)
      expect((await limiter.consume('ann')).allowed).toBe(false)
    })`,
  )
  const args = ['--rootDir', folder, '--detectOpenHandles', '--watchman=false']
  const output = await new Promise<string>((resolve) => {
    const done = (_error: unknown, out: string, errors: string) => resolve(out + errors)
    execFile(process.execPath, [require.resolve('jest/bin/jest'), ...args], { cwd: folder }, done)
  })
  expect(output).toContain('2 passed')
  expect(output).not.toMatch(/open handle|Sluice/)
})
