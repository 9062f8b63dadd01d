import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensureBuilt } from '../../support/built-core.js'
import { LASTING_LIMITS } from '../../support/lasting-limits.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'

const PROCESSES = 4
const REQUESTS_EACH = 150

let server: RedisServer
let workers: ChildProcess[] = []
beforeAll(async () => {
  ensureBuilt('core', 'policies')
  server = await startRedis()
  const env = { ...process.env, REDIS_URL: server.url }
  const file = fileURLToPath(new URL('versions.js', import.meta.url))
  workers = Array.from({ length: PROCESSES }, () => fork(file, { env, execArgv: [] }))
  await Promise.all(workers.map((worker) => once(worker, 'message')))
})
afterAll(async () => {
  for (const worker of workers) worker.disconnect()
  await server.stop()
})

/** How many requests all processes admit together, each by the version with its amount; several at once for each. */
async function admitted(algorithm: string, amounts: readonly number[], carry = 'keep', requests = REQUESTS_EACH) {
  const all = await Promise.all(
    workers.map(async (worker, i) => {
      const limits = [{ ...LASTING_LIMITS[algorithm], limit: amounts[i % amounts.length] }]
      const document = { version: 1, carry, policies: { api: { key: 'user', limits } } }
      worker.send({ document, user: `${algorithm}-${carry}`, requests })
      const [count] = (await once(worker, 'message')) as [number]
      return count
    }),
  )
  return all.reduce((sum, count) => sum + count, 0)
}

for (const algorithm of Object.keys(LASTING_LIMITS)) {
  test(`${algorithm}: usage under one version counts in the next, and in an earlier one that comes back`, async () => {
    expect(await admitted(algorithm, [100], 'keep', 15), 'version 1 admits 60 of its 100').toBe(60)
    expect(await admitted(algorithm, [20]), 'version 2 has less than that').toBe(0)
    expect(await admitted(algorithm, [100, 20]), 'both at once: what version 1 has left, and no more').toBe(40)
    expect(await admitted(algorithm, [100, 20, 200]), 'version 3 beside them: what it has more').toBe(100)
    expect(await admitted(algorithm, [100]), 'back to version 1').toBe(0)
  })
}

test('with carry: reset another amount begins anew, and both together admit no more than their sum', async () => {
  expect(await admitted('slidingLog', [100, 20], 'reset')).toBe(120)
  expect(await admitted('slidingLog', [20, 100], 'reset')).toBe(0)
})
