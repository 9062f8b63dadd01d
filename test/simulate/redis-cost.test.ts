import { readFileSync } from 'node:fs'
import { slidingLog, tokenBucket } from '@sluice/core'
import { expect, test } from 'vitest'
import { spread } from '../../bench/lib/stats.js'
import { BYTES, CPU_BY_LIMITS, MORE_BY_KEYS, redisCost } from '../../packages/simulate/src/figures/redis-cost.js'

interface Point {
  readonly size: number
  readonly figures: { readonly redisUs: readonly number[] }
}

test('the cost of Redis is by the tables of the benches', () => {
  const { growth } = JSON.parse(readFileSync(new URL('../../bench/results.json', import.meta.url), 'utf8'))
  const curves = growth.raw['limits per decision'] as Readonly<Record<string, readonly Point[]>>
  for (const [algorithm, name] of [
    ['slidingLog', 'exact logs on one key'],
    ['gcra', 'gcra'],
  ] as const) {
    for (const [limits, [low, high]] of CPU_BY_LIMITS[algorithm] ?? []) {
      const { redisUs } = curves[name]?.find(({ size }) => size === limits)?.figures ?? { redisUs: [] }
      const measured = spread([...redisUs])
      expect([low, high].map((us) => Number(us.toPrecision(3)))).toEqual(
        [measured.low, measured.high].map((us) => Number(us.toPrecision(3))),
      )
    }
  }
  const page = readFileSync(new URL('../../bench/results.md', import.meta.url), 'utf8')
  const [, ...more] = /exact log: against the first \|(.*)\|/.exec(page)?.[1]?.split('|') ?? []
  expect(MORE_BY_KEYS.slice(1).map(([, [low, high]]) => `(${low.toFixed(2)}–${high.toFixed(2)})`)).toEqual(
    more.map((cell) => cell.trim().split(' ')[1]),
  )
  for (const [algorithm, [first, further]] of Object.entries(BYTES)) {
    const name = { slidingLog: 'exact log', gcra: 'gcra', fixedWindow: 'fixed window' }[algorithm]
    const [, bytes, , each] = new RegExp(`\\| sluice, ${name} \\| (\\d+) \\| ([^|]+) \\| ([^|]+) \\|`).exec(page) ?? []
    expect([String(first), further === 0 ? '–' : String(further)]).toEqual([bytes, each?.trim()])
  }
})

test('there is no figure beyond the tables', () => {
  const log = slidingLog({ limit: 10, window: '1m' })
  const cost = (algorithms: readonly string[], keys: number) =>
    redisCost([{ algorithms, decisions: 1000 }], [{ limit: log as never, keys }], [], 60_000)
  const [one, two, four] = (CPU_BY_LIMITS.slidingLog ?? []).map(([, [min, max]]) => ({ min, max }))
  expect(cost(['slidingLog'], 1000)).toMatchObject({ commands: 1000, cpuMs: one })
  // Between two sizes, both bound it.
  expect(cost(Array(3).fill('slidingLog'), 1000).cpuMs).toEqual({ min: two?.min, max: four?.max })
  expect(cost(Array(9).fill('slidingLog'), 1000).cpuMs).toBeUndefined()
  expect(cost(['slidingLog'], 2_000_000).cpuMs).toBeUndefined()
  expect(cost(['slidingLog', 'gcra'], 1000).cpuMs).toBeUndefined()
  expect(cost(['tokenBucket'], 1000).cpuMs).toBeUndefined()
  const bucket = tokenBucket({ capacity: 5, refill: 5, every: '1m' })
  expect(redisCost([], [{ limit: bucket as never, keys: 9 }], [], 1000).bytes).toBeUndefined()
})

test('clients that ask one key hundreds of times a second are named', () => {
  const { hot } = redisCost(
    [],
    [],
    [
      { identity: 'everyone=', requests: 60_000 },
      { identity: 'ip=192.0.2.7', requests: 600 },
    ],
    60_000,
  )
  expect(hot).toEqual([{ identity: 'everyone=', perSecond: 1000 }])
})
