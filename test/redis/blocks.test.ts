import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, type Limiter, redisStore } from '@sluice/core'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { insist } from '../support/outages.js'
import { redisForTests } from '../support/redis-for-tests.js'
import { until } from '../support/until.js'

const { server, client } = await redisForTests()
// Two stores know no more of each other than two processes do. What counts here is what Redis says, each time.
const stores = [1, 2].map(() => insist(redisStore(client, { timeout: 5000, denyCache: false })))
const [here, there] = stores.map((store) => createLimiter({ name: 'blocks', store, limit: 100, window: '1m' })) as [
  Limiter,
  Limiter,
]
beforeEach(() => server.flush())
afterAll(async () => {
  for (const store of stores) await store.close()
})

test('a block holds in another process with the very next decision, for that key alone, and charges nothing', async () => {
  expect((await there.consume('spammer')).remaining).toBe(99)
  await here.block('spammer', { for: '1h', reason: 'scraping' })
  const verdicts = await Promise.all([there.consume('spammer'), there.consume('friend'), there.consume('spammer')])
  expect(verdicts.map(({ reason }) => reason)).toEqual(['blocked', undefined, 'blocked'])
  expect(verdicts[0]?.block?.reason).toBe('scraping')
  await here.unblock('spammer')
  expect((await there.consume('spammer')).remaining).toBe(98)
})

test('a block seen a moment ago does not hide the next one, nor the end of it', async () => {
  await here.block('one', { for: 150 })
  expect((await there.consume('one')).reason).toBe('blocked')
  await here.block('two', { for: '1h' })
  expect((await there.consume('two')).reason).toBe('blocked')
  await until('the first block is over', async () => (await there.peek('one')).allowed)
  expect((await there.consume('two')).reason).toBe('blocked')
})

test('a short block after a long one does not end the long one', async () => {
  await here.block('long', { for: '1h' })
  await here.block('short', { for: 50 })
  await sleep(1200)
  expect((await there.consume('short')).allowed).toBe(true)
  expect((await there.consume('long')).reason).toBe('blocked')
})

test('decisions, refunds and permits charge once also when a block elsewhere sends them twice', async () => {
  const verdict = await there.consume('k', { cost: 10 })
  await sleep(1100)
  await here.block('other', { for: '1h' })
  await Promise.all([there.consume('k'), there.refund('k', verdict), there.consume('k', { cost: 2 })])
  expect((await there.peek('k')).remaining).toBe(97)
})

test('nothing is left of a block once it has ended', async () => {
  const store = insist(redisStore(client, { timeout: 5000, prefix: 'ends:' }))
  await createLimiter({ name: 'blocks', store, limit: 100, window: '1m' }).block('k', { for: 60 })
  // What the others had blocked before, they have written again.
  const isLeft = async () => [...(await server.lifetimes()).keys()].some((key) => key.startsWith('ends:'))
  await until('every key is gone', async () => !(await isLeft()))
  await store.close()
})
