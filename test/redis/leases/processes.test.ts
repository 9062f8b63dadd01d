// Release: runs several processes.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createLimiter, redisStore, slidingLog } from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { randomFrom } from '../../contract/policies.js'
import { ensureBuiltCore } from '../../support/built-core.js'
import { startProxy, type Wire } from '../../support/proxy.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'

let server: RedisServer
let wire: Wire
const dir = mkdtempSync(join(tmpdir(), 'sluice-leases-'))
beforeAll(async () => {
  ensureBuiltCore()
  server = await startRedis()
  wire = await startProxy(server.port)
})
afterAll(async () => {
  await wire.stop()
  await server.stop()
  rmSync(dir, { recursive: true })
})

/** The offset of each process's clocks from the machine's, in ms. */
const CLOCKS = [-10_000, 0, 10_000, 3_600_000]

interface Spending {
  readonly file: string
  readonly port: number
  readonly timeout: number
  /** The pause between its rounds of requests, and the requests per round. */
  readonly everyMs: number
  readonly atOnce: number
  readonly limits: Readonly<Record<string, object>>
}

/** A process that spends until it is killed. */
async function startSpender(shiftMs: number, spending: Spending): Promise<ChildProcess> {
  const child = fork(fileOf('./spender.js'), [JSON.stringify(spending)], {
    execArgv: ['--import', fileOf('../processes/shifted-clock.js')],
    env: { ...process.env, NODE_OPTIONS: '', CLOCK_SHIFT_MS: String(shiftMs) },
  })
  await once(child, 'message')
  return child
}

async function killed(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

function fileOf(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url))
}

interface Admission {
  readonly limit: string
  /** The interval of the admission, in ms by a clock that all processes share. */
  readonly from: number
  readonly to: number
}

function admissionsIn(file: string): Admission[] {
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => {
    const [limit, from, to] = line.split(' ')
    return { limit: limit as string, from: Number(from), to: Number(to) }
  })
}

/** The largest excess over any interval: admissions surely within it, less what its length allows. */
function largestExcess(admissions: readonly Admission[], allowed: (ms: number) => number): number {
  const byEnd = [...admissions].sort((a, b) => a.to - b.to)
  let most = Number.NEGATIVE_INFINITY
  for (const { from } of admissions) {
    let inside = 0
    for (const { from: start, to } of byEnd) {
      if (start < from) continue
      inside++
      most = Math.max(most, inside - allowed(to - from))
    }
  }
  return most
}

test('each killed process strands at most one lease, whatever its clock', async () => {
  const random = randomFrom(Number(process.env.SLUICE_SEED ?? Date.now()))
  const file = join(dir, 'killed')
  writeFileSync(file, '')
  const size = 50
  // A ttl so long that no unit lapses or returns during the test, which is the worst case.
  const limit = { limit: 20_000, window: '1h', lease: { size, ttl: '10m' } } as const
  const spending: Spending = {
    file,
    port: server.port,
    timeout: 15_000,
    everyMs: 2,
    atOnce: 3,
    limits: { slidingLog: limit },
  }
  let kills = 0
  for (let round = 0; round < 2; round++) {
    const spenders = await Promise.all(CLOCKS.map((shiftMs) => startSpender(shiftMs, spending)))
    const enough = admissionsIn(file).length + 6 * size
    await until('units are spent', () => admissionsIn(file).length > enough, { withinMs: 120_000 })
    for (const spender of spenders) {
      await sleep(50 + random(200))
      await killed(spender)
      kills++
    }
  }
  const client = new Redis(server.url)
  const store = redisStore(client, { timeout: 15_000 })
  const { remaining } = await createLimiter({ name: 'leases', store, limits: [slidingLog(limit)] }).peek('all')
  await store.close()
  client.disconnect()
  const admitted = admissionsIn(file).length
  const stranded = limit.limit - remaining - admitted
  console.log(`${admitted} admitted, ${kills} processes killed, ${stranded} units stranded, at most ${size * kills}`)
  expect(admitted).toBeGreaterThan(10 * size)
  expect(stranded).toBeGreaterThanOrEqual(0)
  expect(stranded).toBeLessThanOrEqual(size * kills)
})

test('no window admits more than the limit through kills, pauses and partitions', async () => {
  await server.flush()
  const random = randomFrom(Number(process.env.SLUICE_SEED ?? Date.now()))
  const file = join(dir, 'windows')
  writeFileSync(file, '')
  const lease = { size: 20, ttl: 100 }
  const limits = {
    slidingLog: { limit: 150, window: 500, lease },
    gcra: { limit: 150, window: 500, burst: 80, lease },
    fixedWindow: { limit: 150, window: 500, lease },
  }
  const spending: Spending = { file, port: wire.port, timeout: 100, everyMs: 10, atOnce: 2, limits }
  const spenders = await Promise.all(CLOCKS.map((shiftMs) => startSpender(shiftMs, spending)))
  // The machine's clock at the instant 0 of the shared clock.
  const originMs = Date.now() - Number(process.hrtime.bigint()) / 1e6
  const faults = [
    async () => {
      const i = random(spenders.length)
      await killed(spenders[i] as ChildProcess)
      spenders[i] = await startSpender(CLOCKS[i] as number, spending)
    },
    async () => {
      server.kill('SIGSTOP')
      await sleep(50 + random(200))
      server.kill('SIGCONT')
    },
    async () => {
      wire.toClient.hold()
      await sleep(50 + random(200))
      wire.toClient.pass()
    },
    async () => {
      wire.toServer.hold()
      await sleep(50 + random(200))
      wire.toServer.pass()
    },
    async () => wire.cut(),
    // A paused process holds its lease beyond the ttl.
    async () => {
      const spender = spenders[random(spenders.length)] as ChildProcess
      spender.kill('SIGSTOP')
      await sleep(100 + random(900))
      spender.kill('SIGCONT')
    },
  ]
  for (let n = 0; n < 12; n++) {
    await sleep(100 + random(300))
    await (faults[n % faults.length] as () => Promise<void>)()
  }
  const least = () => Math.min(...Object.keys(limits).map((limit) => admittedBy(limit).length))
  const admittedBy = (limit: string) => admissionsIn(file).filter((admission) => admission.limit === limit)
  await until('each limit has admitted some hundreds', () => least() > 300, { withinMs: 120_000, everyMs: 200 })
  await Promise.all(spenders.map(killed))

  const admissions = admissionsIn(file)
  const of = (limit: string) => admissions.filter((admission) => admission.limit === limit)
  // The store counts in whole ms: events 499.1 ms apart may be 500 apart by its clock.
  const counts = { log: of('slidingLog'), bucket: of('gcra'), fixed: of('fixedWindow') }
  const seconds = (Math.max(...admissions.map(({ to }) => to)) - Math.min(...admissions.map(({ from }) => from))) / 1000
  console.log(
    Object.entries(counts)
      .map(([name, { length }]) => `${name}: ${length}`)
      .join(', '),
    `in ${seconds.toFixed(1)} s`,
  )
  expect(largestExcess(counts.log, (ms) => 150 * Math.ceil((ms + 1) / 500))).toBeLessThanOrEqual(0)
  expect(largestExcess(counts.bucket, (ms) => 80 + (150 * (ms + 2)) / 500)).toBeLessThanOrEqual(0)
  const windows = new Map<number, number>()
  for (const { from, to } of counts.fixed) {
    const [first, last] = [from - 2, to + 2].map((ms) => Math.floor((originMs + ms) / 500)) as [number, number]
    if (first === last) windows.set(first, (windows.get(first) ?? 0) + 1)
  }
  expect(Math.max(...windows.values())).toBeLessThanOrEqual(150)
})
