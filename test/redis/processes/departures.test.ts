// Release: runs several processes.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensureBuilt } from '../../support/built-core.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'

let redis: RedisServer
let processes: { child: ChildProcess; url: string }[] = []
const departures: { name: string; departedMs: number; process: number }[] = []

beforeAll(async () => {
  ensureBuilt('core', 'express')
  redis = await startRedis()
  processes = await Promise.all(
    [0, 1].map(async (process) => {
      const child = fork(fileURLToPath(new URL('departures.js', import.meta.url)), {
        execArgv: [],
        env: { ...globalThis.process.env, NODE_OPTIONS: '', REDIS_URL: redis.url },
      })
      const [{ port }] = await once(child, 'message')
      child.on('message', (message: { name: string; departedMs: number }) => departures.push({ ...message, process }))
      return { child, url: `http://127.0.0.1:${port}` }
    }),
  )
})
afterAll(async () => {
  for (const { child } of processes) {
    const exit = once(child, 'exit')
    child.disconnect()
    await exit
  }
  await redis.stop()
})

/** Sends `each` requests to every process at once, and returns their departures in order, in ms from the sending. */
async function rush(name: string, each: number): Promise<number[]> {
  departures.length = 0
  const sentMs = performance.timeOrigin + performance.now()
  const sent = processes.flatMap(({ url }) => Array.from({ length: each }, () => fetch(`${url}/${name}`)))
  expect((await Promise.all(sent)).map(({ status }) => status)).toEqual(Array(2 * each).fill(200))
  await expect.poll(() => departures.length).toBe(2 * each)
  expect(new Set(departures.map(({ process }) => process)).size).toBe(2)
  return departures.map(({ departedMs }) => departedMs - sentMs).sort((a, b) => a - b)
}

// Departures may be late on a busy machine, but early only by the difference between the clocks of processes.
const SLACK_MS = 10
/** Only a request that hangs is later than this. */
const LATE_MS = 20_000

test('a leaky bucket with a queue spaces departures by the limit that all processes share', async () => {
  const times = await rush('leaky', 8)
  // With separate limits, two processes would finish in half the time.
  for (const [i, ms] of times.entries()) {
    expect(ms).toBeGreaterThan(i * 100 - SLACK_MS)
    expect(ms).toBeLessThan(i * 100 + LATE_MS)
  }
})

test('queues in two processes share one limit exactly', async () => {
  const times = await rush('queue', 6)
  // At most 4 in any second.
  for (const [i, ms] of times.entries()) {
    expect(ms).toBeGreaterThan(Math.floor(i / 4) * 1000 - SLACK_MS)
    expect(ms).toBeLessThan(Math.floor(i / 4) * 1000 + LATE_MS)
  }
})
