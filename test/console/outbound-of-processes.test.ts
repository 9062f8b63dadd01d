// Release: runs several processes. Runs alone: it reads the figures of all stores of its process.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { redisStore } from '@sluice/core'
import { expect, test } from 'vitest'
import type { FiguresAnswer, HistoryAnswer } from '../../packages/console/src/figures/answers.js'
import { startService } from '../fetch/service.js'
import { ensureBuilt } from '../support/built-core.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { redisForTests } from '../support/redis-for-tests.js'
import { until } from '../support/until.js'
import { ask, asOperator, startConsole, withBody } from './support.js'

const open = closedAfterEach()
const { server: redis, client } = await redisForTests()

/** The console serves 600 requests a minute. */
const SELDOM = { everyMs: 300 }

test('the calls of all processes are added up, and a limit is as the last response of any told it', async () => {
  ensureBuilt('core', 'fetch')
  const service = await startService({ dialect: 'ietf', limit: 50, windowMs: 3_600_000 })
  open.push(() => service.close())
  const env = { ...process.env, REDIS_URL: redis.url, SERVICE_URL: service.url }
  const file = fileURLToPath(new URL('calling-app.js', import.meta.url))
  const workers = [0, 1, 2].map(() => fork(file, { env, execArgv: [] }))
  open.push(() => {
    for (const worker of workers) if (worker.connected) worker.disconnect()
  })
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const store = redisStore(client, { timeout: 10_000 })
  open.push(() => store.close())
  const port = await startConsole({ store }, open)
  for (const worker of [...workers, ...workers]) {
    worker.send('call')
    expect(await once(worker, 'message')).toEqual([200, undefined])
  }
  const live = async (): Promise<FiguresAnswer> =>
    (await ask(port, '/sluice/api/figures', { headers: asOperator(port) })).json
  const remaining = async () => {
    const { sum } = await live()
    return sum.outbound.flatMap(({ policy, quotas }) => quotas.map((quota) => [policy, quota.units, quota.remaining]))
  }
  await until('the last response is known', async () => (await remaining())[0]?.[2] === 44, SELDOM)
  expect(await remaining()).toEqual([['partner', 50, 44]])
  const responses = async () => {
    const now = await redis.now()
    const body = { from: now - 600_000, to: now, step: 'minute' }
    const { json } = await ask(port, '/sluice/api/figures/history', { headers: withBody(port), body })
    return (json as HistoryAnswer).responses.map(({ outcome, counts }) => [outcome, counts.reduce((a, b) => a + b, 0)])
  }
  await until('all are counted', async () => (await responses())[0]?.[1] === 6, SELDOM)
  expect(await responses()).toEqual([['accepted', 6]])
})
