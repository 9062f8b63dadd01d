import { fixedWindow, gcra, keyed, type Limit, type Limiter, slidingWindow, type Verdict } from '@sluice/core'
import { createLimiter } from '../../contract/create-limiter.js'
import type { Check } from './check.js'
import { replay } from './replay.js'
import { Recorder, type Scenario } from './scenario.js'

/** A limit of requests and one of bytes under one key, of which a request may change either half alone. */
const HALVES: readonly Limit<string>[] = [
  gcra({ limit: 10, window: '10s' }),
  gcra({ limit: 100, window: '100s', unit: 'content-bytes' }),
]

/** After a pause, a charge of requests and bytes, or the refund of a charge by its number. */
type Deed = readonly [afterMs: number, cost: number, bytes: number] | readonly [afterMs: number, of: number]

/** Refunds that each half records, while only the other half is charged and the life of the key begins again. */
const WALKS: Record<string, readonly Deed[]> = {
  'bytes alone': [
    [0, 5, 5],
    [0, 4, 4],
    [2000, 0],
    [1000, 0, 60],
    [0, 1],
    [500, 1, 1],
  ],
  'requests alone': [
    [0, 5, 50],
    [0, 1, 40],
    [2000, 0],
    [1000, 4, 0],
    [0, 1],
    [500, 1, 1],
  ],
  'either, more than once': [
    [0, 3, 30],
    [0, 3, 30],
    [0, 2, 20],
    [900, 1],
    [0, 0, 9],
    [900, 2],
    [0, 1, 0],
    [900, 0],
    [9000, 2, 2],
  ],
}

async function walked(name: string, deeds: readonly Deed[]): Promise<Scenario> {
  const recorder = new Recorder([{ name: 'halves', limits: HALVES }])
  const charged: number[] = []
  for (const [afterMs, ...deed] of deeds) {
    recorder.clock.now += afterMs
    recorder.step()
    const [cost, bytes] = deed
    if (bytes === undefined) {
      await recorder.ask(
        ([limiter], verdict) => (limiter as Limiter).refund('k', verdict as Verdict),
        charged[cost as number],
      )
    } else {
      charged.push(recorder.results.length)
      await recorder.ask(([limiter]) => (limiter as Limiter).consume('k', { cost: cost as number, bytes }))
    }
    recorder.step()
    await recorder.ask(([limiter]) => (limiter as Limiter).peek('k', { cost: 1, bytes: 1 }))
  }
  return recorder.scenario(`shared keys: ${name}`)
}

/** Units that are charged by settling, and outlive those of the charge. */
async function settledAbove(): Promise<Scenario> {
  const limits = [
    gcra<string>({ limit: 10, window: '10s', unit: 'tokens' }),
    gcra<string>({ limit: 100, window: '100s', unit: 'cents' }),
  ]
  const recorder = new Recorder([{ name: 'owing', limits }])
  recorder.step()
  await recorder.ask(([limiter]) => (limiter as Limiter).consume('k', { cost: { tokens: 1, cents: 1 } }))
  recorder.step()
  await recorder.ask((_, verdict) => (verdict as Verdict).settle({ tokens: 9, cents: 60 }), 0)
  for (const afterMs of [2000, 6000, 20_000]) {
    recorder.clock.now += afterMs
    recorder.step()
    await recorder.ask(([limiter]) => (limiter as Limiter).peek('k', { cost: { tokens: 1, cents: 1 } }))
  }
  return recorder.scenario('shared keys: settled above the charge', { forgets: true, owes: true })
}

const all = keyed<string>('everyone-else', () => 'all')
const WINDOW = { limit: 6, window: '10s' } as const

/** A limit alone under its key, beside limits that share one, so that the script has the part for shared keys. */
const BESIDE: Record<string, readonly Limit<string>[]> = {
  'a sliding window': [
    gcra({ limit: 9, window: '10s' }),
    fixedWindow({ limit: 20, window: '1m' }),
    slidingWindow({ ...WINDOW, segments: 2, key: all }),
  ],
  'a fixed window': [
    gcra({ limit: 9, window: '10s' }),
    slidingWindow({ limit: 20, window: '1m', segments: 2 }),
    fixedWindow({ ...WINDOW, key: all }),
  ],
  'a bucket': [
    fixedWindow({ limit: 9, window: '10s' }),
    slidingWindow({ limit: 20, window: '1m', segments: 2 }),
    gcra({ ...WINDOW, key: all }),
  ],
}

async function walkedBeside(name: string, limits: readonly Limit<string>[]): Promise<Scenario> {
  const recorder = new Recorder([{ name: 'beside', limits }])
  for (const [afterMs, cost] of [
    [0, 2],
    [0, 3],
    [0, 2],
    [4000, 1],
    [3000, 1],
    [3000, 2],
    [9000, 6],
    [0, 1],
  ] as const) {
    recorder.clock.now += afterMs
    recorder.step()
    await recorder.ask(([limiter]) => (limiter as Limiter).consume('k', { cost }))
    recorder.step()
    await recorder.ask(([limiter]) => (limiter as Limiter).peek('k'))
  }
  return recorder.scenario(`shared keys: ${name} of its own beside`)
}

/** Checks of limits that share a key, beyond their decisions. */
export async function sharedKeyChecks(): Promise<Check[]> {
  const scenarios = await Promise.all([
    ...Object.entries(WALKS).map(([name, deeds]) => walked(name, deeds)),
    ...Object.entries(BESIDE).map(([name, limits]) => walkedBeside(name, limits)),
    settledAbove(),
  ])
  return [
    ...scenarios.map((scenario): Check => ({ name: scenario.name, run: (venue) => replay(scenario, venue) })),
    {
      name: 'shared keys: a full refund leaves no key',
      run: async ({ redis, store }) => {
        await redis.call('FLUSHALL')
        const limits = [
          fixedWindow<string>({ limit: 5, window: '1m' }),
          fixedWindow<string>({ limit: 9, window: '1h' }),
        ]
        const limiter = createLimiter({ name: 'whole', store, limits })
        await limiter.refund('k', await limiter.consume('k', { cost: 2 }))
        const left = (await redis.call('KEYS', '*:whole:*')) as string[]
        return left.length === 0 ? undefined : `left: ${left.join()}`
      },
    },
    {
      name: 'shared keys: a key of the first ms of a clock expires',
      run: async ({ redis, store, clock }) => {
        await redis.call('FLUSHALL')
        clock.now = 0
        const limits = [5, 9].map((limit) => fixedWindow<string>({ limit, window: 1 }))
        await createLimiter({ name: 'first', store, limits }).consume('k')
        const [key] = (await redis.call('KEYS', '*:first:*')) as [string]
        return Number(await redis.call('PTTL', key)) > 0 ? undefined : `${key} would stay for ever`
      },
    },
  ]
}
