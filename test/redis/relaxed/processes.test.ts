// Release: runs several processes.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createLimiter, fixedWindow, redisStore, slidingWindow } from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensureBuiltCore } from '../../support/built-core.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'

let server: RedisServer
beforeAll(async () => {
  ensureBuiltCore()
  server = await startRedis()
  return () => server.stop()
})

/** The offset of each process's clocks from the machine's, in ms. */
const CLOCKS = [-10_000, 0, 10_000, 3_600_000]
const SYNC_MS = 50
/** Time for a round trip and for late timers: far less than it takes to admit the limit. */
const SLACK_MS = 1000
const LIMIT = 1000

interface Done {
  readonly admitted: Readonly<Record<string, readonly number[]>>
}

const children: ChildProcess[] = []
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
})

async function start(shiftMs: number): Promise<ChildProcess> {
  const options = { port: server.port, syncEvery: SYNC_MS, everyMs: 5, limit: LIMIT, window: '30d' }
  const child = fork(fileOf('./counter.js'), [JSON.stringify(options)], {
    execArgv: ['--import', fileOf('../processes/shifted-clock.js')],
    env: { ...process.env, NODE_OPTIONS: '', CLOCK_SHIFT_MS: String(shiftMs) },
  })
  children.push(child)
  await messageOf(child)
  return child
}

/** The next message of a process; rejects where it ends without one. */
async function messageOf(child: ChildProcess): Promise<unknown> {
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`a process ended with ${code}`)
  })
  const [message] = await Promise.race([once(child, 'message'), ended])
  return message
}

function fileOf(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url))
}

/** The most units that a process admits within `ms`. */
function maxWithin(instants: readonly number[], ms: number): number {
  let most = 0
  for (let last = 0, first = 0; last < instants.length; last++) {
    while ((instants[first] as number) <= (instants[last] as number) - ms) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}

test('processes exceed a relaxed limit by at most what all but one admit before an exchange, and Redis counts every unit', async () => {
  const running = await Promise.all(CLOCKS.map(start))
  const done = running.map(messageOf)
  for (const child of running) child.send('go')
  const results = (await Promise.all(done)) as Done[]
  for (const name of ['fixedWindow', 'slidingWindow']) {
    const byProcess = results.map(({ admitted }) => admitted[name] ?? [])
    const total = byProcess.reduce((sum, { length }) => sum + length, 0)
    const most = Math.max(...byProcess.map((instants) => maxWithin(instants, 2 * SYNC_MS + SLACK_MS)))
    const bound = LIMIT + (CLOCKS.length - 1) * Math.min(LIMIT, most)
    console.log(`${name}: ${total} of ${LIMIT} admitted, at most ${bound}`)
    expect(total).toBeGreaterThanOrEqual(LIMIT)
    expect(total).toBeLessThanOrEqual(bound)
  }
  const client = new Redis(server.url)
  const store = redisStore(client, { timeout: 15_000 })
  const limit = { limit: LIMIT, window: '30d' } as const
  for (const [name, make] of Object.entries({ fixedWindow, slidingWindow })) {
    const limiter = createLimiter({ name, store, limits: [make<string>(limit)], consistency: { syncEvery: SYNC_MS } })
    expect((await limiter.peek('all')).remaining, name).toBe(0)
  }
  await store.close()
  client.disconnect()
})
