// Release: runs several processes.
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { ensureBuiltCore } from '../../support/built-core.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'

/** Each round starts four processes. */
const ROUNDS = Number(process.env.SLUICE_ROUNDS ?? 2)

let server: RedisServer
beforeAll(async () => {
  ensureBuiltCore()
  server = await startRedis()
  return () => server.stop()
})

/** Keeps a processor busy until it is killed, for at most a minute. */
function busyLoop(): ChildProcess {
  return spawn(process.execPath, ['-e', 'const end = Date.now() + 60_000; while (Date.now() < end);'])
}

describe('four processes that start at once on a busy machine', () => {
  test.each(Array.from({ length: ROUNDS }, (_, round) => round + 1))(
    'four processes that start at once admit exactly the limit, all by Redis: round %i',
    async () => {
      await server.flush()
      const busy = [busyLoop(), busyLoop()]
      try {
        const worker = fileURLToPath(new URL('./newcomer.js', import.meta.url))
        const started = Array.from({ length: 4 }, () =>
          fork(worker, { execArgv: [], env: { ...process.env, REDIS_URL: server.url } }),
        )
        const outcomes = await Promise.all(
          started.map(async (one) => {
            let outcome: unknown
            one.once('message', (message) => {
              outcome = message
            })
            expect(await once(one, 'exit')).toEqual([0, null])
            return outcome as { admitted: number; alone: number }
          }),
        )
        expect(outcomes.map(({ alone }) => alone)).toEqual([0, 0, 0, 0])
        expect(outcomes.reduce((sum, { admitted }) => sum + admitted, 0)).toBe(5)
      } finally {
        for (const one of busy) one.kill('SIGKILL')
      }
    },
  )
})
