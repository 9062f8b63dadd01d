// Release: runs several processes.
import { type ChildProcess, execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureBuiltCore } from '../../support/built-core.js'
import { byEffort } from '../../support/effort.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'

const LIMIT = 5
const PROCESSES = 4
const REQUESTS_EACH = 250
const MINUTE_MS = 60_000

let server: RedisServer
beforeAll(async () => {
  ensureBuiltCore()
  server = await startRedis()
  return () => server.stop()
})

interface Run {
  readonly limiter: { readonly name: string; readonly make: string; readonly options: object }
  readonly key: string
  readonly requests: number
  /** Whether to release the permits of admitted requests. */
  readonly release?: boolean
}

interface Outcome {
  readonly admitted: number
  readonly errors: readonly string[]
  readonly clockMs: number
  readonly dateMs: number
}

/** Windows so long that none ends during a test, even on a slow machine. */
const exact = {
  slidingLog: { make: 'slidingLog', options: () => ({ limit: LIMIT, window: '10m' }) },
  gcra: { make: 'gcra', options: () => ({ limit: LIMIT, window: '1h' }) },
  'greedy tokenBucket': { make: 'tokenBucket', options: () => ({ refill: LIMIT, every: '1h' }) },
  'interval tokenBucket': {
    make: 'tokenBucket',
    options: (nowMs: number) => ({ refill: LIMIT, every: roomyWindow(nowMs), style: 'interval' }),
  },
  leakyBucket: { make: 'leakyBucket', options: () => ({ leak: LIMIT, every: '1h' }) },
  'leakyBucket with a queue': { make: 'leakyBucket', options: () => ({ leak: LIMIT, every: '1h', queue: true }) },
  'fixedWindow by clock': {
    make: 'fixedWindow',
    options: (nowMs: number) => ({ limit: LIMIT, window: roomyWindow(nowMs) }),
  },
  'fixedWindow by first request': {
    make: 'fixedWindow',
    options: () => ({ limit: LIMIT, window: '10m', anchor: 'first-request' }),
  },
  'strict slidingWindow': {
    make: 'slidingWindow',
    options: () => ({ limit: LIMIT, window: '10m', segments: 60, edge: 'strict' }),
  },
  concurrency: { make: 'concurrency', options: () => ({ limit: LIMIT, ttl: '10m' }) },
}

/** A window of about ten minutes, anchored to the clock, with more than a minute left. */
function roomyWindow(nowMs: number): number {
  for (let windowMs = 10 * MINUTE_MS; ; windowMs += MINUTE_MS + 1) {
    if (windowMs - (nowMs % windowMs) > MINUTE_MS) return windowMs
  }
}

/** The offset of each process's clocks from the machine's, in ms. */
const clocks = {
  'with one clock': [0, 0, 0, 0],
  ...byEffort({ usual: {}, full: { 'with clocks 10 s apart': [-10_000, 0, 10_000, 20_000] } }),
  // Longer than most windows above: decisions by their own clocks would admit more.
  'with clocks an hour apart': [-60 * MINUTE_MS, 0, 60 * MINUTE_MS, 120 * MINUTE_MS],
}

describe.each(Object.entries(clocks))(`${PROCESSES} processes %s`, (clock, shifts) => {
  let workers: ChildProcess[] = []
  beforeAll(async () => {
    workers = shifts.map(startWorker)
    await Promise.all(workers.map((worker) => once(worker, 'message')))
  })
  afterAll(() => Promise.all(workers.map(ended)))

  test.each(Object.entries(exact))(
    `${PROCESSES} processes admit exactly ${LIMIT} of ${PROCESSES * REQUESTS_EACH} concurrent requests: %s`,
    async (name, { make, options }) => {
      const limiter = { name: 'processes', make, options: options(await server.now()) }
      const outcomes = await ask(workers, { limiter, key: `${clock}/${name}`, requests: REQUESTS_EACH })

      expect(outcomes.flatMap(({ errors }) => errors)).toEqual([])
      expect(outcomes.reduce((sum, { admitted }) => sum + admitted, 0)).toBe(LIMIT)
      expect([...(await server.lifetimes())].filter(([, leftMs]) => leftMs < 0)).toEqual([])
    },
  )

  test('the workers have the clocks that this test sets', async () => {
    const limiter = { name: 'clocks', make: 'slidingLog', options: { limit: 1, window: 1 } }
    // The wall clock and the monotonic clock of a process may differ slightly.
    const before = Date.now() - 1000
    const outcomes = await ask(workers, { limiter, key: 'any', requests: 1 })
    const after = Date.now() + 1000
    for (const [i, { clockMs, dateMs }] of outcomes.entries()) {
      for (const ms of [clockMs, dateMs]) {
        expect(ms - (shifts[i] as number)).toBeGreaterThan(before)
        expect(ms - (shifts[i] as number)).toBeLessThan(after)
      }
    }
  })

  test(`${PROCESSES} processes take and release ${LIMIT} permits over several rounds, and lose none`, async () => {
    const limiter = { name: 'permits', make: 'concurrency', options: { limit: LIMIT, ttl: '10m' } }
    const key = `${clock}/again`
    for (let round = 0; round < 3; round++) {
      const outcomes = await ask(workers, { limiter, key, requests: REQUESTS_EACH, release: true })
      expect(outcomes.flatMap(({ errors }) => errors)).toEqual([])
      // A permit may be freed and taken again within a round; all are freed at its end.
      expect(outcomes.reduce((sum, { admitted }) => sum + admitted, 0)).toBeGreaterThanOrEqual(LIMIT)
    }
    const [last] = await ask(workers.slice(0, 1), { limiter, key, requests: REQUESTS_EACH })
    expect(last?.admitted).toBe(LIMIT)
  })
})

test.each(['ioredis', 'ioredis5', 'redis', 'redis5'])(
  'a program on %s exits once it has closed its client, without closing the store',
  async (kind) => {
    const env = { ...process.env, REDIS_PORT: String(server.port), NODE_OPTIONS: '' }
    const { stdout } = await promisify(execFile)(process.execPath, [fileOf('lingerer.js'), kind], {
      env,
      timeout: 100_000,
    })
    expect(stdout.trim()).toBe('true 4')
  },
)

function fileOf(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url))
}

function startWorker(shiftMs: number): ChildProcess {
  return fork(fileOf('worker.js'), {
    // Without the options of this process: workers run the built package, not the source.
    execArgv: ['--import', fileOf('shifted-clock.js')],
    env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: server.url, CLOCK_SHIFT_MS: String(shiftMs) },
  })
}

async function ended(worker: ChildProcess): Promise<void> {
  if (worker.exitCode !== null) return
  const exit = once(worker, 'exit')
  worker.kill('SIGKILL')
  await exit
}

async function ask(workers: readonly ChildProcess[], run: Run): Promise<Outcome[]> {
  const outcomes = workers.map((worker) => once(worker, 'message'))
  for (const worker of workers) worker.send(run)
  return (await Promise.all(outcomes)).map(([outcome]) => outcome as Outcome)
}
