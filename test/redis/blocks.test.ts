import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, type Limiter, redisStore } from '@sluice/core'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { insist } from '../support/outages.js'
import { redisForTests } from '../support/redis-for-tests.js'
import { until } from '../support/until.js'

const { server, client } = await redisForTests()
// Two stores share no more than two processes do. Without a deny cache, Redis decides each time.
const stores = [1, 2].map(() => insist(redisStore(client, { timeout: 5000, denyCache: false })))
const [here, there] = stores.map((store) => createLimiter({ name: 'blocks', store, limit: 100, window: '1m' })) as [
  Limiter,
  Limiter,
]
beforeEach(() => server.flush())
afterAll(async () => {
  for (const store of stores) await store.close()
})

test('a block refuses the very next decision of another process, for that key alone, and charges nothing', async () => {
  expect((await there.consume('spammer')).remaining).toBe(99)
  await here.block('spammer', { for: '1h', reason: 'scraping' })
  const verdicts = await Promise.all([there.consume('spammer'), there.consume('friend'), there.consume('spammer')])
  expect(verdicts.map(({ reason }) => reason)).toEqual(['blocked', undefined, 'blocked'])
  expect(verdicts[0]?.block?.reason).toBe('scraping')
  await here.unblock('spammer')
  expect((await there.consume('spammer')).remaining).toBe(98)
})

test('a block that a process has just seen hides neither the next block nor its own end', async () => {
  await here.block('one', { for: 150 })
  expect((await there.consume('one')).reason).toBe('blocked')
  await here.block('two', { for: '1h' })
  expect((await there.consume('two')).reason).toBe('blocked')
  await until('the first block is over', async () => (await there.peek('one')).allowed)
  expect((await there.consume('two')).reason).toBe('blocked')
})

test('the end of a short block leaves a longer block of another key', async () => {
  await here.block('long', { for: '1h' })
  await here.block('short', { for: 50 })
  await sleep(1200)
  expect((await there.consume('short')).allowed).toBe(true)
  expect((await there.consume('long')).reason).toBe('blocked')
})

test('decisions and refunds take effect once even when a block elsewhere makes the store send them twice', async () => {
  const verdict = await there.consume('k', { cost: 10 })
  await sleep(1100)
  await here.block('other', { for: '1h' })
  await Promise.all([there.consume('k'), there.refund('k', verdict), there.consume('k', { cost: 2 })])
  expect((await there.peek('k')).remaining).toBe(97)
})

test('a block leaves no key once it has ended', async () => {
  const store = insist(redisStore(client, { timeout: 5000, prefix: 'ends:' }))
  await createLimiter({ name: 'blocks', store, limit: 100, window: '1m' }).block('k', { for: 60 })
  // Keys of the other stores do not count: those stores restore their blocks.
  const isLeft = async () => [...(await server.lifetimes()).keys()].some((key) => key.startsWith('ends:'))
  await until('every key has expired', async () => !(await isLeft()))
  await store.close()
})
