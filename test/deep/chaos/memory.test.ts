import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureBuiltCore } from '../../support/built-core.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { effort } from './effort.js'
import { note } from './report.js'

let server: RedisServer
beforeAll(async () => {
  ensureBuiltCore()
  server = await startRedis()
})
afterAll(() => server.stop())

/**
 * Only of millions a heap tells: half of the smallest thing that could stay of each, a pointer, is then far more than
 * what compiled code, pools and garbage come to.
 */
const LEAK_BYTES = 4

interface Flood {
  readonly identities: number
  readonly seconds: number
  readonly warmBytes: number
  readonly fullBytes: number
  readonly baseBytes: number
  /** One-shot identities that the process still holds when all is over. */
  readonly left: number
  /** Of so many `known` ones that are held on purpose, those that the count sees. */
  readonly seen: number
  readonly known: number
  readonly isVictimLimited: boolean
}

// A few thousand mostly wait for sweeps; millions want a processor each.
describe('after one-shot identities without number,', { concurrent: !effort.isFull }, () => {
  test.each(['memory store', 'block list', 'deny cache', 'lease pools'])(
    '%s: none of them is held when all is over, and who is limited stays so',
    { timeout: 500_000 },
    async (part) => {
      const program = fileURLToPath(new URL('./memory.js', import.meta.url))
      const identities = effort.of(10_000_000, 20_000)
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ['--expose-gc', program, part, String(identities), String(server.port)],
        { env: { ...process.env, NODE_OPTIONS: '' } },
      )
      const flood: Flood = JSON.parse(stdout)
      note('memory', part.replaceAll(' ', '-'), flood)
      expect(flood.isVictimLimited).toBe(true)
      expect(flood.left).toBeLessThanOrEqual(100)
      expect(flood.seen).toBe(flood.known)
      if (effort.isFull) expect(flood.baseBytes).toBeLessThan(flood.warmBytes + LEAK_BYTES * identities)
      expect([...(await server.lifetimes()).values()].filter((leftMs) => leftMs < 0)).toEqual([])
    },
  )
})
