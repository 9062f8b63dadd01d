import { createLimiter, fixedWindow, gcra, perMinute, perSecond, redisStore, slidingLog } from '@sluice/core'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { insist } from '../support/outages.js'
import { redisForTests } from '../support/redis-for-tests.js'

const { server, client } = await redisForTests()
const store = insist(redisStore(client, { timeout: 5000 }))
beforeEach(() => server.flush())
afterAll(() => store.close())

/** What is asked for here, and what a store asks for by itself to hear of changed blocks. */
const BESIDE = ['config|resetstat', 'info', 'hmget']

/** How many commands Redis runs meanwhile, by name: the fewest of three times, as the store looks for blocks once a second. */
async function commandsOf(work: (time: number) => Promise<unknown>): Promise<Record<string, number>> {
  const times = [
    await commandsOnce(() => work(1)),
    await commandsOnce(() => work(2)),
    await commandsOnce(() => work(3)),
  ]
  const names = new Set(times.flatMap((counts) => Object.keys(counts)))
  const fewest = [...names].map((name) => [name, Math.min(...times.map((counts) => counts[name] ?? 0))] as const)
  return Object.fromEntries(fewest.filter(([, count]) => count > 0))
}

async function commandsOnce(work: () => Promise<unknown>): Promise<Record<string, number>> {
  await server.call('CONFIG', 'RESETSTAT')
  await work()
  const stats = Object.entries(await server.fields('INFO', 'commandstats'))
  const counts = stats.map(([name, stat]) => [name.replace('cmdstat_', ''), Number(/calls=(\d+)/.exec(stat)?.[1])])
  return Object.fromEntries(counts.filter(([name]) => !BESIDE.includes(String(name))))
}

test.for([
  ['one log', [slidingLog({ limit: 60, window: '1m' })]],
  ['logs of one key', [perSecond(60), perMinute(80)]],
  ['a fixed window', [fixedWindow({ limit: 60, window: '1h' })]],
  ['gcra', [gcra({ limit: 60, window: '1m' })]],
] as const)('a crowd that asks for the same at once costs Redis as much as two: %s', async ([, limits]) => {
  const limiter = createLimiter({ store, limits })
  const crowd = (key: string, size: number) => (time: number) =>
    Promise.all(Array.from({ length: size }, () => limiter.consume(`${key}-${time}`)))
  await crowd('first', 2)(0)
  const ofTwo = await commandsOf(crowd('two', 2))
  const ofMany = await commandsOf(crowd('many', 50))
  expect(ofMany).toEqual(ofTwo)
  expect((await limiter.peek('many-1')).remaining).toBe(10)
})

test('a crowd of which only some have room is refused in the order in which it asked', async () => {
  const limiter = createLimiter({ store, limits: [fixedWindow({ limit: 10, window: '1h' })] })
  const verdicts = await Promise.all(Array.from({ length: 8 }, () => limiter.consume('k', { cost: 3 })))
  expect(verdicts.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
    [true, 7],
    [true, 4],
    [true, 1],
    ...Array.from({ length: 5 }, () => [false, 1]),
  ])
})
