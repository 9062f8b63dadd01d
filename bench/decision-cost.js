// What one decision costs, in Redis and in Node, by algorithm: npm run bench:decisions [-- inFlight [decisions]]
// Redis time is INFO commandstats of EVALSHA, and all CPU of the server (INFO cpu), protocol work included;
// Node time is the CPU of this process, client included. Medians of several rounds; an empty script is the floor.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  perDay,
  perHour,
  perMinute,
  perSecond,
  redisStore,
  slidingLog,
  slidingWindow,
} from '@sluice/core'
import { Redis } from 'ioredis'

const [inFlight = 100, decisions = 20_000] = process.argv.slice(2).map(Number)
const ROUNDS = 7
const KEYS = 1000

const POLICIES = {
  'fixed window': [fixedWindow({ limit: 1e6, window: '1m' })],
  gcra: [gcra({ limit: 1e6, window: '1m' })],
  'sliding window, two counters': [slidingWindow({ limit: 1e6, window: '1m' })],
  'sliding window, strict, 60 segments': [slidingWindow({ limit: 1e6, window: '1m', edge: 'strict' })],
  'exact log, filling': [slidingLog({ limit: 100_000, window: '1h' })],
  'exact log of 100, entries lapsing': [slidingLog({ limit: 100, window: '100ms' })],
  'exact log of 100, refusing': [slidingLog({ limit: 100, window: '1h' })],
  'four exact logs on one key': [perSecond(1000), perMinute(5000), perHour(20_000), perDay(100_000)],
  'concurrency, never freed': [concurrency({ limit: 1e5, ttl: '1m' })],
}

const { server, port, dir } = await startRedis()
const redis = new Redis(port)
// Until the server listens.
redis.on('error', () => {})
await redis.ping()
try {
  // Every decision is to be one that Redis makes.
  const store = redisStore(redis, { timeoutMs: 5000, denyCache: false })
  console.log(`${inFlight} in flight, ${ROUNDS} rounds of ${decisions} decisions over ${KEYS} keys; µs per decision`)
  row('', 'script', 'redis cpu', 'node cpu', 'batch')
  const empty = String(await redis.script('LOAD', 'return 1'))
  await measure('empty script, unbatched', () => redis.evalsha(empty, 0))
  // What the first would else pay for all: code that is compiled once.
  const warmUp = createLimiter({ name: 'warm-up', store, limits: [gcra({ limit: 1e6, window: '1m' })] })
  for (let i = 0; i < 1000; i++) await Promise.all(Array.from({ length: 100 }, () => warmUp.consume(`user:${i}`)))
  for (const [name, limits] of Object.entries(POLICIES)) {
    const limiter = createLimiter({ name: name.replace(/\W+/g, '-'), store, limits })
    let key = 0
    await measure(name, () => limiter.consume(`user:${key++ % KEYS}`))
    await redis.flushall()
  }
  await store.close()
} finally {
  redis.disconnect()
  server.kill('SIGKILL')
  await once(server, 'close')
  rmSync(dir, { recursive: true, force: true })
}

/**
 * @param {string} name
 * @param {() => Promise<unknown>} decide
 */
async function measure(name, decide) {
  /** @type {number[][]} */
  const rounds = []
  for (let round = 0; round <= ROUNDS; round++) {
    const before = { ...(await serverCost()), node: process.cpuUsage() }
    let left = decisions
    await Promise.all(
      Array.from({ length: inFlight }, async () => {
        while (left-- > 0) await decide()
      }),
    )
    const node = process.cpuUsage(before.node)
    const after = await serverCost()
    // The first round warms up both sides.
    if (round === 0) continue
    rounds.push([
      (after.script - before.script) / decisions,
      (after.cpu - before.cpu) / decisions,
      (node.user + node.system) / decisions,
      decisions / (after.calls - before.calls),
    ])
  }
  row(name, ...[0, 1, 2, 3].map((i) => median(rounds.map((round) => round[i] ?? 0)).toFixed(2)))
}

async function serverCost() {
  const stats = await redis.info('commandstats')
  const [, calls = 0, script = 0] = /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(stats) ?? []
  const cpu = await redis.info('cpu')
  const seconds = (/** @type {string} */ field) => Number(new RegExp(`${field}:([\\d.]+)`).exec(cpu)?.[1])
  return {
    calls: Number(calls),
    script: Number(script),
    cpu: (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1e6,
  }
}

async function startRedis() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (probe.address())
  probe.close()
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', dir]
  const server = spawn('redis-server', settings, { stdio: 'ignore' })
  // Also when the reader of what is printed goes away.
  process.once('exit', () => server.kill('SIGKILL'))
  await once(server, 'spawn')
  return { server, port, dir }
}

/** @param {number[]} values */
function median(values) {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

/** @param {string[]} cells */
function row(...cells) {
  console.log(cells.map((cell, i) => (i === 0 ? cell.padEnd(38) : cell.padStart(10))).join(''))
}
