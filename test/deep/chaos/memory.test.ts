// Deep: takes a quarter of an hour. Runs alone: it measures memory.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureBuiltCore } from '../../support/built-core.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { note } from './report.js'

let server: RedisServer
beforeAll(async () => {
  ensureBuiltCore()
  server = await startRedis()
})
afterAll(() => server.stop())

/**
 * Half a pointer, the smallest leak per identity. For millions of identities, this is far more than compiled code, pools
 * and garbage take.
 */
const LEAK_BYTES = 4

interface Flood {
  readonly identities: number
  readonly seconds: number
  readonly warmBytes: number
  readonly fullBytes: number
  readonly baseBytes: number
  /** One-shot identities that the process still holds at the end. */
  readonly left: number
  /** The number that the count finds of the `known` identities, which are held on purpose. */
  readonly seen: number
  readonly known: number
  readonly isVictimLimited: boolean
}

const IDENTITIES = 10_000_000

describe('memory after a flood of one-shot identities', () => {
  test.each(['memory store', 'block list', 'deny cache', 'lease pools'])(
    'the %s holds none of a flood of one-shot identities after their end, and limited clients stay limited',
    { timeout: 500_000 },
    async (part) => {
      const program = fileURLToPath(new URL('./memory.js', import.meta.url))
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ['--expose-gc', program, part, String(IDENTITIES), String(server.port)],
        { env: { ...process.env, NODE_OPTIONS: '' } },
      )
      const flood: Flood = JSON.parse(stdout)
      note('memory', part.replaceAll(' ', '-'), flood)
      expect(flood.isVictimLimited).toBe(true)
      expect(flood.left).toBeLessThanOrEqual(100)
      expect(flood.seen).toBe(flood.known)
      expect(flood.baseBytes).toBeLessThan(flood.warmBytes + LEAK_BYTES * IDENTITIES)
      expect([...(await server.lifetimes()).values()].filter((leftMs) => leftMs < 0)).toEqual([])
    },
  )
})
