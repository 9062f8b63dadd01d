// Release: runs several processes. Takes long: begins first.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { LimitedFetchOptions } from '@sluice/fetch'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { ensureBuilt } from '../support/built-core.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { type Service, type ServiceOptions, startService } from './service.js'

const PROCESSES = 4

let redis: RedisServer
let callers: ChildProcess[]
let service: Service
beforeAll(async () => {
  ensureBuilt('core', 'fetch')
  redis = await startRedis()
  return () => redis.stop()
})
beforeEach(async () => {
  const env = { ...process.env, REDIS_URL: redis.url }
  const path = fileURLToPath(new URL('caller.js', import.meta.url))
  callers = Array.from({ length: PROCESSES }, () => fork(path, { env, execArgv: [] }))
  await Promise.all(callers.map((caller) => once(caller, 'message')))
})
afterEach(async () => {
  for (const caller of callers) caller.kill()
  await service.close()
})

async function callAll(requests: number, options: Omit<LimitedFetchOptions, 'store'>): Promise<unknown[]> {
  const results = await Promise.all(
    callers.map(async (caller) => {
      caller.send({ url: service.url, requests, options })
      const [statuses] = await once(caller, 'message')
      return statuses as unknown[]
    }),
  )
  return results.flat()
}

const start = async (options: ServiceOptions) => {
  service = await startService(options)
}

test.each(['even', 'burst'] as const)(
  'four processes spend a limit together that responses tell, and none of their requests is refused (%s)',
  async (pace) => {
    await start({ dialect: 'github', limit: 40, windowMs: 4000 })
    const grows = setTimeout(() => (service.limit = 80), 6000)
    const statuses = await callAll(50, { pace })
    clearTimeout(grows)
    expect(statuses).toEqual(Array(PROCESSES * 50).fill(200))
    expect(service.refusedAt).toEqual([])
  },
  60_000,
)

test('before the first response of a key, one request is sent by all processes', async () => {
  await start({ dialect: 'ietf', limit: 1000, windowMs: 60_000, latencyMs: 50 })
  await callAll(5, {})
  expect(service.arrivedBeforeResponse).toBe(1)
  expect(service.admitted).toBe(PROCESSES * 5)
})

test('a process that was frozen goes on without a refusal', async () => {
  await start({ dialect: 'anthropic', limit: 20, windowMs: 2000 })
  const [frozen] = callers as [ChildProcess]
  const all = callAll(30, {})
  await expect.poll(() => service.admitted, { timeout: 20_000 }).toBeGreaterThan(8)
  frozen.kill('SIGSTOP')
  await expect.poll(() => service.admitted, { timeout: 20_000 }).toBeGreaterThan(50)
  frozen.kill('SIGCONT')
  expect(await all).toEqual(Array(PROCESSES * 30).fill(200))
  expect(service.refusedAt).toEqual([])
}, 60_000)

test('what a killed process had in flight strands nobody beyond the reset', async () => {
  await start({ dialect: 'github', limit: 20, windowMs: 3000, latencyMs: 20 })
  const [killed, ...others] = callers as [ChildProcess, ...ChildProcess[]]
  killed.send({ url: service.url, requests: 30, options: {} })
  await expect.poll(() => service.admitted, { timeout: 20_000 }).toBeGreaterThan(3)
  killed.kill('SIGKILL')
  callers = others
  expect(await callAll(15, {})).toEqual(Array(others.length * 15).fill(200))
  expect(service.refusedAt).toEqual([])
}, 60_000)

test('after a refusal without a time, no second burst comes from any process', async () => {
  await start({ dialect: 'bare', limit: 20, windowMs: 1000 })
  const statuses = await callAll(15, { retry: { attempts: 20 } })
  expect(statuses).toEqual(Array(PROCESSES * 15).fill(200))
  expect(service.refusedAt.length).toBeGreaterThan(0)
  // Those that were in flight when a response first told it, and a few that a busy machine sent late.
  const endOfBurst = (service.refusedAt[0] as number) + 900
  expect(service.refusedAt.filter((at) => at > endOfBurst).length).toBeLessThanOrEqual(3)
}, 90_000)

test('Retry-After holds the requests of all processes', async () => {
  await start({ dialect: 'retry-after', limit: 2, windowMs: 600_000 })
  await callAll(1, { maxWait: '1s' })
  await callAll(2, { maxWait: '1s' })
  const arrived = service.arrivedAt.length
  const errors = await callAll(10, { maxWait: '1s' })
  expect(errors.filter((error) => !String(error).includes('a pause that the service asks for'))).toEqual([])
  expect(service.arrivedAt.length).toBe(arrived)
}, 60_000)

test('no request of any process comes before Retry-After is over', async () => {
  const limit = 20
  await start({ dialect: 'retry-after', limit, windowMs: 3000, retryAfter: 3 })
  // All processes know the key, so that none of them waits for a first response.
  await callAll(1, {})
  const all = callAll(25, { retry: { attempts: 5 } })
  await expect.poll(() => service.refusedAt.length, { timeout: 20_000 }).toBeGreaterThan(0)
  expect(await all).toEqual(Array(PROCESSES * 25).fill(200))
  // A refusal is known to all once its response is there: those before it were in flight.
  const refused = service.refusedAt as number[]
  const inFlightMs = 1000
  const bursts = refused.filter((at, i) => i === 0 || at - (refused[i - 1] as number) > inFlightMs)
  for (const began of bursts) {
    const during = service.arrivedAt.filter((at) => at > began + inFlightMs && at < began + 3000)
    expect(during).toEqual([])
  }
}, 60_000)
