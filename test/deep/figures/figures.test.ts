// Runs alone: stores of earlier files would go on reporting.
import { randomUUID } from 'node:crypto'
import { redisStore } from '@sluice/core'
import { PROCESSES } from '@sluice/core/internal'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { beforeAll, expect, test } from 'vitest'
import { ProcessFigures } from '../../../packages/core/src/features/records/process-figures.js'
import { Reporter } from '../../../packages/core/src/features/records/reporter.js'
import { type CountsReport, FIGURES, type FiguresKeeper } from '../../../packages/core/src/store/figures.js'
import { byEffort } from '../../support/effort.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'

const RUNS = byEffort({ usual: 40, full: 2000 })
const START = 30_000_000 * 60_000
/** The process makes its own reports: none comes by a timer. */
const NEVER = 2 ** 31 - 1
const PROCESSES_OF_TEST = 3

let redis: RedisServer
let client: Redis
beforeAll(async () => {
  redis = await startRedis()
  client = new Redis(redis.port)
  return async () => {
    client.disconnect()
    await redis.stop()
  }
})

type Fate = 'arrives' | 'request lost' | 'reply lost'

/** A process whose reports get lost, and whose counts the test makes. */
class TestProcess {
  fate: Fate = 'arrives'
  readonly counts = new Map<string, number>()
  /** The counts that it knows to be added. */
  acknowledged: ReadonlyMap<string, number> = new Map()
  /** Its counts before those that Redis has the history of; undefined if Redis has nothing of it. */
  base: ReadonlyMap<string, number> | undefined
  readonly reporter: Reporter

  constructor(keeper: FiguresKeeper) {
    const lossy: FiguresKeeper = {
      from: 'processes',
      now: () => keeper.now(),
      live: () => keeper.live(),
      sums: (...args) => keeper.sums(...args),
      beforeClose() {},
      add: async (report: CountsReport) => {
        if (this.fate === 'request lost') throw new Error('lost')
        const isAdded = await keeper.add(report)
        if (isAdded) this.base ??= this.acknowledged
        if (this.fate === 'reply lost') throw new Error('lost')
        return isAdded
      },
    }
    const source = { read: () => ({ counts: new Map(this.counts), live: () => '{}' }), stop() {} }
    this.reporter = new Reporter(lossy, source, { id: randomUUID(), reports: 0 }, NEVER)
  }

  async report(fate: Fate): Promise<void> {
    this.fate = fate
    await this.reporter.report()
    if (fate === 'arrives') this.acknowledged = new Map(this.counts)
  }
}

/** Processes beside a Redis, and all that they have counted. */
class World {
  now = START
  readonly prefix = `${randomUUID()}:`
  readonly store = redisStore(client, { prefix: this.prefix, timeout: 20_000, clock: () => this.now })
  readonly keeper: FiguresKeeper = this.store[FIGURES]
  readonly processes = Array.from({ length: PROCESSES_OF_TEST }, () => new TestProcess(this.keeper))
  #backup:
    | { readonly values: readonly [key: string, value: Buffer][]; readonly bases: readonly TestProcess['base'][] }
    | undefined

  async sums(step: 'minute' | 'hour'): Promise<Map<string, number>> {
    const stepMs = { minute: 60_000, hour: 3_600_000 }[step]
    const all = await this.keeper.sums(step, START / stepMs - 1, Math.floor(this.now / stepMs))
    const sums = new Map<string, number>()
    for (const each of all) for (const [name, count] of each ?? []) sums.set(name, (sums.get(name) ?? 0) + count)
    return sums
  }

  /** The counts that the history must have. */
  expected(): Record<string, number> {
    const sums = new Map<string, number>()
    for (const { counts, base } of this.processes) {
      for (const [name, count] of counts) sums.set(name, (sums.get(name) ?? 0) + count - (base?.get(name) ?? 0))
    }
    return Object.fromEntries([...sums].filter(([, count]) => count !== 0))
  }

  keys(): Promise<string[]> {
    return client.keys(`${this.prefix}v1:{figures}:*`)
  }

  /** The history is gone, and with it all that processes know to be in it. */
  async lose(): Promise<void> {
    for (const key of await this.keys()) await client.del(key)
    for (const process of this.processes) process.base = undefined
  }

  async backUp(): Promise<void> {
    const keys = await this.keys()
    const values = keys.map(async (key): Promise<[string, Buffer]> => [key, (await client.dumpBuffer(key)) as Buffer])
    this.#backup = { values: await Promise.all(values), bases: this.processes.map(({ base }) => base) }
  }

  /** A replica, or a snapshot, takes over: it has what was there a while ago. */
  async restore(): Promise<void> {
    if (!this.#backup) return
    await this.lose()
    for (const [key, value] of this.#backup.values) await client.restore(key, 3_600_000, value, 'REPLACE')
    for (const [i, base] of this.#backup.bases.entries()) (this.processes[i] as TestProcess).base = base
  }

  async close(): Promise<void> {
    await this.store.close()
    for (const key of await client.keys(`${this.prefix}*`)) await client.del(key)
  }
}

const name = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('api||as', 'api|minute|ls', 'login||ao', '=t3') },
  { weight: 1, arbitrary: fc.constantFrom('__proto__||as', '=p2', '-inf||as', '{x}|*|lc', 'a'.repeat(64)) },
)
const process = fc.nat({ max: PROCESSES_OF_TEST - 1 })
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('count' as const), process, name, more: fc.nat({ max: 1_000_000 }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('report' as const),
      process,
      fate: fc.constantFrom<Fate>('arrives', 'arrives', 'request lost', 'reply lost'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 999, 59_999, 60_000, 600_000) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('lose' as const, 'back up' as const, 'restore' as const) }) },
)

test('counts are added exactly once, whatever replies are lost, and whatever Redis comes back', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const world = new World()
      for (const each of steps) {
        const process = world.processes['process' in each ? each.process : 0] as TestProcess
        if (each.do === 'count') process.counts.set(each.name, (process.counts.get(each.name) ?? 0) + each.more)
        else if (each.do === 'report') await process.report(each.fate)
        else if (each.do === 'wait') world.now += each.ms
        else if (each.do === 'lose') await world.lose()
        else if (each.do === 'back up') await world.backUp()
        else await world.restore()
      }
      for (const process of world.processes) {
        await process.report('arrives')
        expect(process.reporter.failure).toBeUndefined()
      }
      for (const step of ['minute', 'hour'] as const) {
        const { [PROCESSES]: _, ...found } = Object.fromEntries(await world.sums(step))
        expect(found).toEqual(world.expected())
      }
      for (const key of await world.keys()) expect(await client.pttl(key), key).toBeGreaterThan(0)
      await world.close()
    }),
    { numRuns: RUNS },
  )
})

test('however many names there are, a minute stays small, and nothing is lost', async () => {
  const names = fc.array(
    fc.tuple(fc.nat({ max: 400 }), fc.constantFrom('as', 'ls', 'lc', 'aor'), fc.nat({ max: 1000 })),
    {
      minLength: 100,
      maxLength: 600,
    },
  )
  await fc.assert(
    fc.asyncProperty(names, async (given) => {
      const world = new World()
      const [process] = world.processes as [TestProcess]
      const byCode = new Map<string, number>()
      for (const [i, [n, code, more]] of given.entries()) {
        const name = `p${n}|=|${code}`
        process.counts.set(name, (process.counts.get(name) ?? 0) + more)
        byCode.set(code, (byCode.get(code) ?? 0) + more)
        if (i % 100 === 0) await process.report('arrives')
      }
      await process.report('arrives')
      const found = new Map<string, number>()
      for (const [name, count] of await world.sums('minute')) {
        const code = name.split('|')[2]
        if (code !== undefined) found.set(code, (found.get(code) ?? 0) + count)
      }
      for (const [code, count] of byCode) expect(found.get(code) ?? 0).toBe(count)
      for (const key of await world.keys()) if (/:[mh]:/.test(key)) expect(await client.zcard(key)).toBeLessThan(128)
      await world.close()
    }),
    { numRuns: RUNS / 10 },
  )
})

test('Redis and memory keep the same names where there is little room, however often known ones come again', async () => {
  const names = fc.uniqueArray(fc.nat({ max: 130 }), { minLength: 60, maxLength: 110 })
  const reports = fc.array(fc.tuple(names, fc.constantFrom('as', 'ls')), { minLength: 2, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(reports, async (given) => {
      const world = new World()
      const memory = new ProcessFigures(() => world.now)
      const counts = new Map<string, number>()
      for (const [i, [numbers, code]] of given.entries()) {
        for (const n of numbers) counts.set(`p${n}|=|${code}`, (counts.get(`p${n}|=|${code}`) ?? 0) + 1)
        const report = {
          run: 'run',
          number: i + 1,
          ageMs: 0,
          after: i === 0 ? undefined : i,
          live: '',
          counts: numbers.map((n) => [`p${n}|=|${code}`, counts.get(`p${n}|=|${code}`) ?? 0, 0] as const),
        }
        expect(await world.keeper.add(report)).toBe(true)
        await memory.add(report)
      }
      const minute = START / 60_000
      const [[inRedis], [inMemory]] = [
        await world.keeper.sums('minute', minute, minute),
        await memory.sums('minute', minute, minute),
      ]
      expect(Object.fromEntries(inRedis ?? [])).toEqual(Object.fromEntries(inMemory ?? []))
      await world.close()
    }),
    { numRuns: RUNS },
  )
})
