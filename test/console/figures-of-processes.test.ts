// Release: runs several processes. Runs alone: it reads the figures of all stores of its process.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { redisStore } from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensureBuilt } from '../support/built-core.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'
import { APPS, ask, asOperator, authorize, portOf, type StartApp, withBody } from './support.js'

interface Made {
  readonly decisions: number
  readonly refused: number
}

let redis: RedisServer
let workers: ChildProcess[] = []
let server: Server
let store: ReturnType<typeof redisStore>
let client: Redis
beforeAll(async () => {
  ensureBuilt('core', 'console')
  redis = await startRedis()
  const env = { ...process.env, REDIS_URL: redis.url }
  const file = fileURLToPath(new URL('counting-app.js', import.meta.url))
  workers = Array.from({ length: 4 }, () => fork(file, { env, execArgv: [] }))
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  client = new Redis(redis.port)
  client.on('error', () => {})
  store = redisStore(client, { timeout: 10_000, warnings: { SLUICE_STORE_UNAVAILABLE: false } })
  server = await (APPS['node:http'] ?? (APPS.Koa as StartApp))({ store, authorize })
})
afterAll(async () => {
  for (const worker of workers) if (worker.connected) worker.disconnect()
  server.closeAllConnections()
  server.close()
  await store.close()
  client.disconnect()
  await redis.stop()
})

async function made(worker: ChildProcess): Promise<Made> {
  worker.send('rest')
  return ((await once(worker, 'message')) as [Made])[0]
}

function sumOf(all: readonly Made[]): Made {
  return all.reduce((sum, each) => ({
    decisions: sum.decisions + each.decisions,
    refused: sum.refused + each.refused,
  }))
}

async function live() {
  const port = portOf(server)
  return (await ask(port, '/sluice/api/figures', { headers: asOperator(port) })).json
}

/** The sums of the last hour, by minutes and by hours. */
async function recent(step: 'minute' | 'hour'): Promise<Made & { alone: number; processes: number }> {
  const port = portOf(server)
  const now = await redis.now()
  const body = { from: now - 3_600_000, to: now, step }
  const { json } = await ask(port, '/sluice/api/figures/history', { headers: withBody(port), body })
  const total = (column: number[] = []) => column.reduce((sum, count) => sum + count, 0)
  return {
    decisions: total(json?.decisions),
    refused: total(json?.refused),
    alone: total(json?.alone),
    processes: Math.max(...(json?.processes ?? [0])),
  }
}

/** The console serves 600 requests a minute. */
const SELDOM = { everyMs: 300 }

test('figures are the counts of four processes, of which one is killed, before and after Redis is replaced by an empty one', async () => {
  for (const worker of workers) worker.send('load')
  await sleep(2500)
  const before = await Promise.all(workers.map(made))
  const all = sumOf(before)
  expect(all.refused).toBeGreaterThan(0)
  await until('all is in the minutes', async () => (await recent('minute')).decisions === all.decisions, SELDOM)
  for (const step of ['minute', 'hour'] as const) expect(await recent(step)).toMatchObject({ ...all, alone: 0 })
  await until('all is live', async () => (await live()).sum.totals.decisions === all.decisions, SELDOM)
  // This process has a console, and reports too.
  const figures = await live()
  expect(figures).toMatchObject({ from: 'processes', processCount: 5, notes: [], sum: { totals: all, away: 0 } })
  const records = figures.processes.map(({ recordsRefusals }: { recordsRefusals: boolean }) => recordsRefusals)
  expect(records.sort()).toEqual([false, false, false, false, true])

  const [killed, ...left] = workers as [ChildProcess, ...ChildProcess[]]
  for (const worker of workers) worker.send('load')
  await sleep(1500)
  killed.kill('SIGKILL')
  const later = sumOf(await Promise.all(left.map(made)))
  const gained = later.decisions - sumOf(before.slice(1)).decisions
  await until(
    'the others are in the minutes',
    async () => (await recent('hour')).decisions >= all.decisions + gained,
    SELDOM,
  )
  await until('the killed one is gone', async () => (await live()).processCount === 4, SELDOM)
  const withKilled = await recent('minute')
  expect(await live()).toMatchObject({ sum: { totals: later } })

  redis.kill('SIGKILL')
  for (const worker of left) worker.send('load')
  await sleep(1500)
  await redis.restart()
  await sleep(1000)
  const end = sumOf(await Promise.all(left.map(made)))
  const inNewOne = { decisions: end.decisions - later.decisions, refused: end.refused - later.refused }
  await until(
    'all since is in the new one',
    async () => {
      const { decisions } = await recent('minute').catch(() => ({ decisions: 0 }))
      return decisions === inNewOne.decisions
    },
    SELDOM,
  )
  const since = await recent('minute')
  expect(since).toMatchObject(inNewOne)
  expect(since.alone).toBeGreaterThan(0)
  expect(withKilled.decisions).toBeGreaterThanOrEqual(sumOf(before).decisions + gained)
})
