import { createLimiter, fixedWindow, gcra, perMinute, perSecond, redisStore, slidingLog } from '@sluice/core'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { insist } from '../support/outages.js'
import { redisForTests } from '../support/redis-for-tests.js'

const { server, client } = await redisForTests()
const store = insist(redisStore(client, { timeout: 5000 }))
beforeEach(() => server.flush())
afterAll(() => store.close())

/** Commands of the test itself, and of the store's own look for changed blocks. */
const BESIDE = ['config|resetstat', 'info', 'hmget']

/** The commands that Redis executes during `work`, by name: the fewest of three times, as the store looks for blocks once a second. */
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
] as const)('fifty equal requests at once cost Redis as many commands as two: %s', async ([, limits]) => {
  const limiter = createLimiter({ store, limits })
  const crowd = (key: string, size: number) => (time: number) =>
    Promise.all(Array.from({ length: size }, () => limiter.consume(`${key}-${time}`)))
  await crowd('first', 2)(0)
  const ofTwo = await commandsOf(crowd('two', 2))
  const ofMany = await commandsOf(crowd('many', 50))
  expect(ofMany).toEqual(ofTwo)
  expect((await limiter.peek('many-1')).remaining).toBe(10)
})

test('equal requests at once are admitted in their order while there is room, and then refused', async () => {
  const limiter = createLimiter({ store, limits: [fixedWindow({ limit: 10, window: '1h' })] })
  const verdicts = await Promise.all(Array.from({ length: 8 }, () => limiter.consume('k', { cost: 3 })))
  expect(verdicts.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
    [true, 7],
    [true, 4],
    [true, 1],
    ...Array.from({ length: 5 }, () => [false, 1]),
  ])
})
