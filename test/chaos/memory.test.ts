import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureBuiltCore } from '../support/built-core.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { effort } from './effort.js'
import { note } from './report.js'

let server: RedisServer
beforeAll(async () => {
  ensureBuiltCore()
  server = await startRedis()
})
afterAll(() => server.stop())

/** Garbage that a collection leaves, code that was compiled meanwhile. */
const NOISE_BYTES = 4e6

interface Flood {
  readonly identities: number
  readonly seconds: number
  readonly warmBytes: number
  readonly fullBytes: number
  readonly baseBytes: number
  readonly isVictimLimited: boolean
}

// A few thousand mostly wait for sweeps; millions want a processor each.
describe('after one-shot identities without number,', { concurrent: !effort.isFull }, () => {
  test.each(['memory store', 'block list', 'deny cache', 'lease pools'])(
    '%s: the heap is at its base again, and who is limited stays so',
    { timeout: 500_000 },
    async (part) => {
      const program = fileURLToPath(new URL('./memory.js', import.meta.url))
      const identities = effort.of(10_000_000, 200_000)
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ['--expose-gc', program, part, String(identities), String(server.port)],
        { env: { ...process.env, NODE_OPTIONS: '' } },
      )
      const flood: Flood = JSON.parse(stdout)
      note('memory', part.replaceAll(' ', '-'), flood)
      expect(flood.isVictimLimited).toBe(true)
      expect(flood.baseBytes).toBeLessThan(flood.warmBytes + NOISE_BYTES)
      expect([...(await server.lifetimes()).values()].filter((leftMs) => leftMs < 0)).toEqual([])
    },
  )
})
